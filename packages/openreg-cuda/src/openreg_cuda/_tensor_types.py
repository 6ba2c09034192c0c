# SPDX-License-Identifier: BSD-3-Clause
"""``torch.cuda.FloatTensor`` and the other legacy types of tensors."""

from __future__ import annotations

from typing import Any

import torch

_NAMES = (
    "BFloat16Tensor",
    "BoolTensor",
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
)


class _TensorType(type):
    """The class of a legacy type, whose objects are tensors."""

    own: Any  # the class of PyTorch, which cannot create a tensor

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.own)

    def __call__(cls, *args: Any, **kwargs: Any) -> torch.Tensor:
        empty = torch.empty(0, dtype=cls.own.dtype, layout=cls.own.layout)
        tensor: torch.Tensor = empty.to("cuda").new(*args, **kwargs)
        return tensor

    def __getattr__(cls, name: str) -> Any:  # dtype, layout, is_cuda, is_sparse
        return getattr(type.__getattribute__(cls, "own"), name)


_sets_device = False  # whether the default device is the one of a default type


def _set_default_tensor_type(kind: Any) -> None:
    global _sets_device
    is_cuda = isinstance(kind, _TensorType)
    if is_cuda:
        kind = getattr(torch, kind.__name__.rpartition(".")[2])
    _set_type_of_host(kind)
    if is_cuda or _sets_device:
        torch.set_default_device("cuda" if is_cuda else None)
    _sets_device = is_cuda


def replace() -> None:
    """Replaces the types in ``torch.cuda`` and ``torch.cuda.sparse``."""
    for module in (torch.cuda, torch.cuda.sparse):
        for name in _NAMES:
            own = getattr(module, name, None)
            if own is None or isinstance(own, _TensorType):
                continue
            # PyTorch reads the whole name where a type is an argument.
            kind = _TensorType(f"{module.__name__}.{name}", (), {"own": own})
            setattr(module, name, kind)
    compiled: Any = torch._C
    compiled._set_default_tensor_type = _set_default_tensor_type


_set_type_of_host: Any = torch._C._set_default_tensor_type
