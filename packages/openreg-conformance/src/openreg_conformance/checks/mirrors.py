# SPDX-License-Identifier: BSD-3-Clause
"""Copies tensors to another device with their geometry, and extracts their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree


def is_strided(tensor: Tensor) -> bool:
    """Returns whether a tensor is strided: neither sparse nor nested."""
    return tensor.layout == torch.strided and not tensor.is_nested


def mirror(values: Any, device: str) -> Any:
    """Copies every tensor in nested values; CPU names become device names.

    Args:
        values: Lists, tuples and dictionaries of tensors on the CPU and other values.
        device: The target device, which may be the CPU.

    Returns:
        The same structure. Strides, offsets, conjugate and negative bits are preserved,
        tensors that share a storage also share one on the target, and tensors that
        require a gradient are leaves.
    """
    storages: dict[int, Tensor] = {}
    made: dict[int, Tensor] = {}

    def move_strided(tensor: Tensor) -> Tensor:
        if tensor.is_conj():
            return torch.conj(move_strided(torch.conj(tensor)))
        if tensor.is_neg():
            return torch._neg_view(move_strided(torch._neg_view(tensor)))
        storage = tensor.untyped_storage()
        flat = storages.get(storage._cdata)
        if flat is None:
            raw = torch.empty(0, dtype=torch.uint8).set_(storage)
            flat = storages[storage._cdata] = raw.to(device, copy=True)
        return torch.empty(0, dtype=tensor.dtype, device=device).set_(
            flat.untyped_storage(),
            tensor.storage_offset(),
            tensor.size(),
            tensor.stride(),
        )

    def move(value: Any) -> Any:
        if isinstance(value, Tensor):
            if id(value) not in made:
                bare = value.detach()
                dense = is_strided(value)
                copy = move_strided(bare) if dense else bare.to(device, copy=True)
                made[id(value)] = copy.requires_grad_(value.requires_grad)
            return made[id(value)]
        if isinstance(value, str):
            return device if value == "cpu" else value
        if isinstance(value, torch.device):
            return torch.device(device) if value.type == "cpu" else value
        if isinstance(value, slice):
            return slice(
                *(move(each) for each in (value.start, value.stop, value.step))
            )
        return value

    with torch.no_grad():
        moved = pytree.tree_map(move, values)
    storages.clear()  # recursive functions live until a garbage collection
    made.clear()
    return moved


def bits(tensor: Tensor) -> Tensor:
    """Returns the values of a strided tensor in logical order, as host bytes."""
    value = tensor.detach().cpu().resolve_conj().resolve_neg()
    value = value.clone(memory_format=torch.contiguous_format)
    return value.view(-1).view(torch.uint8)


def parts(tensor: Tensor) -> list[Tensor]:
    """Returns the strided tensors of which a tensor consists."""
    if tensor.is_nested:
        return list(tensor.unbind())
    if tensor.layout == torch.sparse_coo:
        return [tensor._indices(), tensor._values()]
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        return [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]
    return [tensor]


def transform(values: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Replaces every tensor in nested values; ``requires_grad`` is preserved."""

    def replace(tensor: Tensor) -> Tensor:
        changed = change(tensor.detach())
        return changed.detach().requires_grad_(tensor.requires_grad)

    with torch.no_grad():
        return pytree.tree_map_only(Tensor, replace, values)


def tensors(values: Any) -> list[Tensor]:
    """Lists the tensors in nested values."""
    return [each for each in pytree.tree_leaves(values) if isinstance(each, Tensor)]
