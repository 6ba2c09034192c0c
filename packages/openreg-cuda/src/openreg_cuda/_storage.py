# SPDX-License-Identifier: BSD-3-Clause
"""Storages on the device: a CPU build can neither create nor resize them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


def _is_cuda(device: Any) -> bool:
    return device is not None and torch.device(device).type == "cuda"


def _create(
    cls: type[torch.UntypedStorage], *args: Any, device: Any = None, **kwargs: Any
) -> torch.UntypedStorage:
    if not _is_cuda(device):
        if device is not None:
            kwargs["device"] = device
        storage: torch.UntypedStorage = _create_elsewhere(cls, *args, **kwargs)
        return storage
    if "size" in kwargs and not args:
        args = (kwargs.pop("size"),)
    if len(args) > 1 or kwargs:
        raise TypeError(
            "UntypedStorage: expected a size in bytes or a sequence of bytes with "
            f"device={device}, got {args!r} and {kwargs!r}"
        )
    content: int | Sequence[int] = args[0] if args else 0
    if isinstance(content, Sequence):
        tensor = torch.tensor(content, dtype=torch.uint8, device=device)
    else:
        tensor = torch.empty(content, dtype=torch.uint8, device=device)
    return tensor.untyped_storage()


def _resize(self: torch.UntypedStorage, size: int) -> torch.UntypedStorage:
    if not self.is_cuda:
        storage: torch.UntypedStorage = _resize_elsewhere(self, size)
        return storage
    from openreg_cuda._backend import compiled

    compiled().resize_storage(self, size)
    return self


def replace() -> None:
    """Makes ``torch.UntypedStorage`` accept the device."""
    torch.UntypedStorage.__new__ = _create  # type: ignore[assignment]
    torch.UntypedStorage.resize_ = _resize  # type: ignore[method-assign,assignment]


_create_elsewhere: Any = torch.UntypedStorage.__new__
_resize_elsewhere: Any = torch.UntypedStorage.resize_
