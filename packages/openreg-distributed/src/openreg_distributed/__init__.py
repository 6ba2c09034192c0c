# SPDX-License-Identifier: BSD-3-Clause
"""occl, the backend of ``torch.distributed`` for OpenReg devices.

``register()`` tells ``torch.distributed`` of it, which torch-openreg does by itself.
That loads the C++ of this package, since the allocator of symmetric memory is an object
of it. gloo, and all that a group is made of, comes with the first group.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import torch

from . import _settings as _settings
from ._build import TORCH_VERSION as _BUILT_FOR
from ._registration import register

if TYPE_CHECKING:
    from . import flight
    from ._C import Options

__all__ = ["Options", "flight", "register"]


def __getattr__(name: str) -> Any:
    if name == "Options":
        from openreg_distributed import _engine

        return _engine.Options
    if name == "flight":
        return importlib.import_module(".flight", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


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
