# SPDX-License-Identifier: BSD-3-Clause
"""``torch.profiler`` for OpenReg devices.

``register()`` tells PyTorch of it, which torch-openreg does by itself.
``utilization()`` tells how well the devices were used in a profile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from openreg_profiler._build import TORCH_VERSION as _BUILT_FOR
from openreg_profiler._registration import register

if TYPE_CHECKING:
    from openreg_profiler._utilization import Utilization, utilization

__all__ = ["Utilization", "register", "utilization"]


def __getattr__(name: str) -> Any:
    if name in ("Utilization", "utilization"):  # torch is only half imported at first
        from openreg_profiler import _utilization

        return getattr(_utilization, name)
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
            f"openreg-profiler was built for torch {built_for}, but torch {found} is "
            f"installed. Install that torch: pip install torch=={built_for}; or build "
            f"openreg-profiler again for torch {found}."
        )


_check_torch_version(_BUILT_FOR, torch.__version__)
