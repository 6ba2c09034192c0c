# SPDX-License-Identifier: BSD-3-Clause
"""FlexAttention takes tensors of the device.

Dynamo traces this function, so it is replaced, and its code is not changed.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor
from torch.amp import autocast_mode
from torch.nn.attention import flex_attention

from openreg_inductor import _patches


def register() -> None:
    """Changes the function that asks for the type of the device.

    If torch has another than 2.13.0, it refuses the device by itself.
    """
    if not _patches.knows_attention():
        return
    device = torch._C._get_privateuse1_backend_name()
    module: Any = flex_attention
    validate = module._validate_device

    @functools.wraps(validate)
    def _validate_device(query: Tensor, key: Tensor, value: Tensor) -> None:
        if query.device.type != device:
            validate(query, key, value)

    module._validate_device = _validate_device
    _register_autocast(module.flex_attention_hop, device)


def _register_autocast(attend: Any, device: str) -> None:
    """Registers what autocast does, as PyTorch does for CUDA and the CPU."""
    casts: Any = autocast_mode
    names: Any = torch._C.DispatchKey
    key = names.AutocastPrivateUse1

    def cast(query: Tensor, keys: Tensor, values: Tensor, *args: Any) -> Any:
        dtype = torch.get_autocast_dtype(device)
        tensors = casts._cast((query, keys, values), device, dtype)
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(key)):
            return attend(*tensors, *args)

    attend.py_impl(key)(cast)
