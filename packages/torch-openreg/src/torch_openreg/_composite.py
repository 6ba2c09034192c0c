# SPDX-License-Identifier: BSD-3-Clause
"""Decomposes composite operators for dispatch modes."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import openreg_runtime

# Keys with which an operator's own kernel takes precedence over its parts.
_OWN_KERNELS = [
    f"{kind}{backend}"
    for kind in ("", "Sparse", "SparseCsr", "NestedTensor", "Quantized")
    for backend in ("CPU", "CUDA" if openreg_runtime.is_cuda() else "PrivateUse1")
]


def decompose(
    mode: TorchDispatchMode,
    func: torch._ops.OpOverload,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Calls the parts of a composite operator, so that the mode sees them.

    Autograd does so before a mode is called. Inference mode skips autograd and passes
    operators such as ``to``, ``reshape`` and ``matmul`` to the mode unchanged.

    Returns:
        The operator's result, or ``NotImplemented`` if it is not composite.
    """
    if not _has_parts(func):
        return NotImplemented
    tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
    # Nested tensors have different parts.
    if not tensors or any(x.is_nested or _has_kernel(func, x) for x in tensors):
        return NotImplemented
    with mode:
        return func.decompose(*args, **kwargs)


@cache
def _has_parts(func: torch._ops.OpOverload) -> bool:
    return _registered(func, "CompositeImplicitAutograd")


def _has_kernel(func: torch._ops.OpOverload, tensor: torch.Tensor) -> bool:
    keys = torch._C._dispatch_keys(tensor)
    return any(
        keys.has(getattr(torch._C.DispatchKey, key)) and _registered(func, key)
        for key in _OWN_KERNELS
    )


def _registered(func: torch._ops.OpOverload, key: str) -> bool:
    name: str = func.name()  # type: ignore[no-untyped-call]
    return torch._C._dispatch_has_kernel_for_dispatch_key(name, key)
