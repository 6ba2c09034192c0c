# SPDX-License-Identifier: BSD-3-Clause
"""occl, the backend of ``torch.distributed`` for OpenReg devices.

``register()`` tells ``torch.distributed`` of it. What it is made of is loaded when the
first group is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from ._build import TORCH_VERSION as _BUILT_FOR

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Backend

__all__ = ["register"]

_NAME = "occl"


def _check_torch_version(built_for: str, found: str) -> None:
    """Compares two versions of torch; ``+cpu`` and the like do not count.

    Args:
        built_for: The version this package was compiled against.
        found: The version that is installed.

    Raises:
        RuntimeError: If they differ; the C++ interface is not stable across them.
    """
    if found.partition("+")[0] != built_for:
        raise RuntimeError(
            f"openreg-distributed was built for torch {built_for}, but torch {found} "
            f"is installed. Install that torch: pip install torch=={built_for}; or "
            f"build openreg-distributed again for torch {found}."
        )


_check_torch_version(_BUILT_FOR, torch.__version__)


def register() -> None:
    """Registers the backend for the device's present name; more calls do nothing.

    A group that names no backend then has it for tensors of the device.

    Raises:
        RuntimeError: If torch was built without ``torch.distributed``.
    """
    from torch import distributed

    if not distributed.is_available():
        raise RuntimeError("occl needs torch.distributed, which this torch lacks")
    device = torch._C._get_privateuse1_backend_name()
    backend = distributed.Backend
    if backend.backend_capability.get(_NAME) == [device]:
        return
    backend.register_backend(_NAME, _create, extended_api=True, devices=[device])


def _create(options: Any, backend_options: Any) -> Backend:
    """Makes the backend of a group, as ``torch.distributed`` asks for it."""
    from openreg_distributed import _engine

    return _engine.create(options, backend_options)
