# SPDX-License-Identifier: BSD-3-Clause
"""Tells ``torch.distributed`` of the backend, which the first group loads.

torch-openreg imports this within ``import torch``, perhaps while the package above is
still half imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Backend

_NAME = "occl"


def register() -> None:
    """Registers the backend for the device's present name; more calls do nothing.

    A group that names no backend then has it for tensors of the device. Importing
    torch does this already where torch-openreg is installed.

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
