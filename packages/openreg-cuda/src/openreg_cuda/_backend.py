# SPDX-License-Identifier: BSD-3-Clause
"""The modules behind ``torch.cuda``, imported at the first call.

The names are added while ``torch`` is being imported, when neither can be imported.
"""

from __future__ import annotations

from functools import cache
from types import ModuleType

CUDA = 1  # c10::DeviceType::CUDA


@cache
def openreg() -> ModuleType:
    """Returns ``torch.openreg``, whose functions serve the device."""
    from torch_openreg import openreg

    return openreg


@cache
def compiled() -> ModuleType:
    """Returns the compiled module of openreg-aten."""
    from openreg_aten import _C

    return _C
