# SPDX-License-Identifier: BSD-3-Clause
"""Higher-order operators, such as ``torch.cond``, within autocast.

Autocast applies to the operators that their functions call. For the higher-order
operators themselves, PyTorch registers a fallthrough for the autocast keys of the CPU,
CUDA and XPU only. On a PrivateUse1 device a call would not find a kernel.
"""

from __future__ import annotations

from typing import Any

import torch

_ops: Any = torch._ops  # has no type hints
_names: Any = torch._C.DispatchKey
_KEY = _names.AutocastPrivateUse1


def register_fallthrough() -> None:
    """Registers a fallthrough for all present and future higher-order operators."""
    keys = _ops._HIGHER_ORDER_OP_DEFAULT_FALLTHROUGH_DISPATCH_KEYS
    if _KEY in keys:
        return
    keys.append(_KEY)
    for operator in _ops._higher_order_ops.values():
        if _KEY not in operator.py_kernels:
            operator.fallthrough(_KEY)
