# SPDX-License-Identifier: BSD-3-Clause
"""Higher-order operators, such as ``torch.cond``, within autocast.

Autocast looks at the operators that their functions call. PyTorch lets calls of their
own pass the dispatch keys of autocast for the CPU, CUDA and XPU, and for no others:
on a PrivateUse1 device, they found no kernel.
"""

from __future__ import annotations

from typing import Any

import torch

_ops: Any = torch._ops  # whose functions have no types
_names: Any = torch._C.DispatchKey
_KEY = _names.AutocastPrivateUse1


def let_through() -> None:
    """Lets calls pass the key, of all operators, also of those yet to be defined."""
    keys = _ops._HIGHER_ORDER_OP_DEFAULT_FALLTHROUGH_DISPATCH_KEYS
    if _KEY in keys:
        return
    keys.append(_KEY)
    for operator in _ops._higher_order_ops.values():
        if _KEY not in operator.py_kernels:
            operator.fallthrough(_KEY)
