# SPDX-License-Identifier: BSD-3-Clause
"""``torch.profiler`` for OpenReg devices.

``register()`` registers it in PyTorch; torch-openreg calls it on import.
``utilization()`` reports how well a profile used the devices.
"""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING, Any

from openreg_profiler import _libraries

_libraries.select(__path__, metadata.version("torch"))  # before torch is loaded

from openreg_profiler._registration import register  # noqa: E402

if TYPE_CHECKING:
    from openreg_profiler._utilization import Utilization, utilization

__all__ = ["Utilization", "register", "utilization"]


def __getattr__(name: str) -> Any:
    if name in ("Utilization", "utilization"):  # torch may be only partly imported
        from openreg_profiler import _utilization

        return getattr(_utilization, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
