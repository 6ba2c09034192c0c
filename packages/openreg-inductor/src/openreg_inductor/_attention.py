# SPDX-License-Identifier: BSD-3-Clause
"""Makes FlexAttention accept device tensors.

Dynamo traces this function, so the module attribute is replaced instead of the code.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor
from torch.amp import autocast_mode
from torch.nn.attention import flex_attention

from openreg_aten._C import device_type
from openreg_inductor import _patches


def register() -> None:
    """Replaces the function that checks the device type.

    If it differs from the supported versions of torch, it is left as it is and
    refuses the device.
    """
    if not _patches.knows_attention():
        return
    device = device_type()
    module: Any = flex_attention
    validate = module._validate_device

    @functools.wraps(validate)
    def _validate_device(query: Tensor, key: Tensor, value: Tensor) -> None:
        if query.device.type != device:
            validate(query, key, value)

    module._validate_device = _validate_device
    _register_autocast(module.flex_attention_hop, device)


def _register_autocast(attend: Any, device: str) -> None:
    """Registers the autocast rule, as PyTorch does for CUDA and the CPU."""
    casts: Any = autocast_mode
    backend: str = torch._C._dispatch_key_for_device(device)
    key = getattr(torch._C.DispatchKey, f"Autocast{backend}")
    if key in attend.py_kernels:
        return

    def cast(query: Tensor, keys: Tensor, values: Tensor, *args: Any) -> Any:
        dtype = torch.get_autocast_dtype(device)
        tensors = casts._cast((query, keys, values), device, dtype)
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(key)):
            return attend(*tensors, *args)

    attend.py_impl(key)(cast)
