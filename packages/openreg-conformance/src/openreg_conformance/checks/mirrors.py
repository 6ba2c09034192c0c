# SPDX-License-Identifier: BSD-3-Clause
"""Copies of tensors on another device with their geometry, and what to compare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree


def is_strided(tensor: Tensor) -> bool:
    """Whether a tensor is dense: neither sparse nor nested."""
    return tensor.layout == torch.strided and not tensor.is_nested


def mirror(values: Any, device: str) -> Any:
    """Copies every tensor of a nest; names of the CPU become names of the device.

    Args:
        values: Lists, tuples and dictionaries of tensors on the CPU and other values.
        device: Where the copies go; the CPU too, for copies of its own.

    Returns:
        The same nest. Strides, offsets, conjugate and negative bits stay, tensors that
        share a storage share one there, and those that require a gradient are leaves.
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
    storages.clear()  # functions that refer to themselves live until a collection
    made.clear()
    return moved


def bits(tensor: Tensor) -> Tensor:
    """The values of a strided tensor in logical order, as bytes of host memory."""
    value = tensor.detach().cpu().resolve_conj().resolve_neg()
    value = value.clone(memory_format=torch.contiguous_format)
    return value.view(-1).view(torch.uint8)


def parts(tensor: Tensor) -> list[Tensor]:
    """The strided tensors that a tensor consists of."""
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
    """Replaces every tensor of a nest; each keeps whether it requires a gradient."""

    def replace(tensor: Tensor) -> Tensor:
        changed = change(tensor.detach())
        return changed.detach().requires_grad_(tensor.requires_grad)

    with torch.no_grad():
        return pytree.tree_map_only(Tensor, replace, values)


def tensors(values: Any) -> list[Tensor]:
    """Lists the tensors of a nest."""
    return [each for each in pytree.tree_leaves(values) if isinstance(each, Tensor)]
