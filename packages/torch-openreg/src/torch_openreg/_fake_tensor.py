# SPDX-License-Identifier: BSD-3-Clause
"""Convolutions of fake tensors with the strides of the device.

FakeTensor chooses the memory format of a convolution by a list of devices. The device
runs CPU kernels, so its fake convolutions follow the CPU's rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses import fake_impls
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils import _pytree as pytree

from torch_openreg.openreg._utils import device_type

_Impl = Callable[..., Any]
_Operator = torch._ops.OpOverload[..., Any]

_AS_ON_THE_CPU = (
    torch.ops.aten.convolution.default,
    torch.ops.aten.convolution_backward.default,
)


def register() -> None:
    """Applies the CPU's rules to device tensors before PyTorch's rules."""
    for op in _AS_ON_THE_CPU:
        theirs = fake_impls.op_implementations_dict[op]
        fake_impls._deregister_op_impl(op)
        fake_impls.register_op_impl(op)(_as_on_the_cpu(theirs))


def _as_on_the_cpu(theirs: _Impl) -> _Impl:
    def run(
        fake_mode: FakeTensorMode, func: _Operator, *args: Any, **kwargs: Any
    ) -> Any:
        ours = device_type()
        devices = {
            each.fake_device
            for each in pytree.tree_leaves((args, kwargs))
            if isinstance(each, FakeTensor)
        }
        if len(devices) != 1 or next(iter(devices)).type != ours:
            return theirs(fake_mode, func, *args, **kwargs)
        with fake_mode:
            args, kwargs = _moved((args, kwargs), torch.device("cpu"))
            return _moved(func(*args, **kwargs), devices.pop())

    return run


def _moved(values: Any, device: torch.device) -> Any:
    """Creates fake tensors with the same metadata on another device."""

    def move(tensor: FakeTensor) -> torch.Tensor:
        return torch.empty_strided(
            tensor.size(), tensor.stride(), dtype=tensor.dtype, device=device
        )

    return pytree.tree_map_only(FakeTensor, move, values)
