# SPDX-License-Identifier: BSD-3-Clause
"""Operators whose results make the host wait for a device.

They copy, read values, or have shapes that depend on data. ``_facts/cuda_waits.py``
lists the differences on CUDA.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from torch_openreg._facts.operators import (
    COPIES,
    COPY_FROM,
    INDEXED,
    REPEAT_INTERLEAVE,
    TO_COPY,
    UNTAGGED,
)
from torch_openreg.openreg._utils import device_type


@cache
def _may_wait(func: torch._ops.OpOverload) -> bool:
    tags = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}
    known = COPIES | UNTAGGED | INDEXED
    return func._schema.name in known or bool(tags & set(func.tags))


def _tensors(*values: object) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]


def cause_of_wait(
    func: torch._ops.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> str | None:
    """Returns why an operator waits for a device, or None if it does not."""
    if not _may_wait(func):
        return None
    name = func._schema.name
    if name in COPIES:
        return _cause_of_copy(name, args, kwargs)
    on_device = [x for x in _tensors(args, kwargs) if x.device.type == device_type()]
    if not on_device:
        return None
    if name in INDEXED:
        masks = any(x.dtype in (torch.bool, torch.uint8) for x in _tensors(args[1]))
        return f"{name} with a mask" if masks else None
    if name == REPEAT_INTERLEAVE and kwargs.get("output_size") is not None:
        return None
    return name


def _cause_of_copy(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> str | None:
    if name == TO_COPY:
        source: torch.Tensor = args[0]
        there = torch.device(kwargs.get("device") or source.device).type
        waits = not kwargs.get("non_blocking", False)
        cause = _direction(source.device.type, there) if waits else None
    else:
        first, second, *rest = args
        source, target = (first, second) if name == COPY_FROM else (second, first)
        non_blocking = kwargs.get("non_blocking", rest[0] if rest else False)
        cause = cause_of_copy(target, source, non_blocking)
    return None if cause is None else f"{name} {cause}"


def cause_of_copy(
    target: torch.Tensor, source: torch.Tensor, non_blocking: bool
) -> str | None:
    """Returns the device types between which a copy waits, or None.

    Args:
        target: The target of the copy.
        source: The source of the copy.
        non_blocking: Whether the copy may return before its completion.
    """
    # Copies into pageable memory are never asynchronous.
    if target.device.type == "cpu" and non_blocking:
        non_blocking = target.is_pinned()
    if non_blocking:
        return None
    return _direction(source.device.type, target.device.type)


def _direction(here: str, there: str) -> str | None:
    if here == there or device_type() not in (here, there):
        return None
    return f"from {here} to {there}"
