# SPDX-License-Identifier: BSD-3-Clause
"""occl, the backend of ``torch.distributed`` for OpenReg devices.

``register()`` registers it in ``torch.distributed``; torch-openreg calls it on import.
That loads the C++ code of this package, which contains the allocator of symmetric
memory. gloo is loaded with the first group.
"""

from __future__ import annotations

import importlib
from importlib import metadata
from typing import TYPE_CHECKING, Any

from . import _libraries

_libraries.select(__path__, metadata.version("torch"))  # before torch is loaded

import torch  # noqa: E402, F401 - its autoload may import the modules below

from . import _settings as _settings  # noqa: E402
from ._registration import register  # noqa: E402

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
