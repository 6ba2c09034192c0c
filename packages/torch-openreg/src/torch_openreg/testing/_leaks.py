# SPDX-License-Identifier: BSD-3-Clause
"""Finds device memory that a block of a program does not give back."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from torch_openreg._lines import user_line
from torch_openreg.openreg import device_count, memory_allocated, synchronize
from torch_openreg.openreg._utils import device_type, valid_device_index


class _Block(NamedTuple):
    storage: StorageWeakRef
    device: int
    size: int
    made: str

    def alive(self) -> bool:
        return not self.storage.expired()  # type: ignore[no-untyped-call]


class _Ledger(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the storage of every tensor that an operator makes."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.blocks: dict[int, _Block] = {}
        self.thread = threading.get_ident()

    def __torch_dispatch__(
        self,
        func: torch._ops.OpOverload,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        del types
        kwargs = kwargs or {}
        given = {_key(leaf) for leaf in tree_leaves((args, kwargs))}
        result = func(*args, **kwargs)
        for tensor in tree_leaves(result):
            key = _key(tensor)
            if key is not None and key not in given and key not in self.blocks:
                storage = tensor.untyped_storage()
                shape, dtype = tuple(tensor.shape), str(tensor.dtype)
                self.blocks[key] = _Block(
                    StorageWeakRef(storage),  # type: ignore[no-untyped-call]
                    tensor.device.index,
                    storage.nbytes(),
                    f"{dtype.removeprefix('torch.')}{list(shape)} by "
                    f"{func._schema.name}, {user_line(self.thread)}",
                )
        return result


def _key(value: object) -> int | None:
    """Returns what identifies the storage of a tensor of the device."""
    if not isinstance(value, torch.Tensor) or value.device.type != device_type():
        return None
    if value.layout != torch.strided:
        return None
    return int(value.untyped_storage()._cdata)


@contextmanager
def assert_no_leak(
    device: torch.device | str | int | None = None,
) -> Iterator[None]:
    """Fails if more device memory is in use after the block than before it.

    Garbage is collected before each count, so cycles of references are no leak; and
    the devices are waited for, as work that they have keeps its memory. What a first
    call makes for good, such as the state of an optimizer, counts as well: call it once
    before.

    Args:
        device: Device, index or name; all devices by default.

    Raises:
        AssertionError: At the end, if memory is left; it names the size, shape, type,
            operator and line of each tensor. An error of the block itself goes on
            instead.
        RuntimeError: If there is no device of this index.
    """
    devices = (
        [*range(device_count())] if device is None else [valid_device_index(device)]
    )
    before = _count(devices)
    ledger = _Ledger()
    with ledger:
        yield
    after = _count(devices)
    lines = []
    for index in devices:
        left = after[index] - before[index]
        if left <= 0:
            continue
        lines.append(f"{left} bytes are left on {device_type()}:{index}:")
        blocks = [
            f"  {block.size} bytes: {block.made}"
            for block in ledger.blocks.values()
            if block.device == index and block.size and block.alive()
        ]
        lines += blocks or ["  not made by an operator of this thread"]
    if lines:
        raise AssertionError("\n".join(lines))


def _count(devices: Sequence[int]) -> dict[int, int]:
    gc.collect()
    for index in devices:
        synchronize(index)
    return {index: memory_allocated(index) for index in devices}
