# SPDX-License-Identifier: BSD-3-Clause
"""Finds device memory that a block of a program does not give back."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from torch_openreg._lines import user_line
from torch_openreg.openreg import (
    _gpu_trace,
    device_count,
    memory_allocated,
    memory_snapshot,
    synchronize,
)
from torch_openreg.openreg._utils import device_type, valid_device_index

from ._own_work import own_work


class _Block(NamedTuple):
    device: int
    size: int
    made: str


class _Ledger(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes every block of memory that is allocated, and what operators make of it.

    The GPU trace tells of blocks, from all threads. An operator of the thread that
    entered tells which tensor a block became.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.thread = threading.get_ident()
        self.lines: dict[int, str] = {}  # by address
        self.tensors: dict[int, str] = {}

    def allocated(self, address: int) -> None:
        self.lines[address] = user_line(self.thread)

    def freed(self, address: int) -> None:
        self.lines.pop(address, None)
        self.tensors.pop(address, None)

    def __torch_dispatch__(
        self,
        func: torch._ops.OpOverload,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        del types
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            address = _address(tensor)
            if address in self.lines and address not in self.tensors:
                shape, dtype = list(tensor.shape), str(tensor.dtype)
                self.tensors[address] = (
                    f"{dtype.removeprefix('torch.')}{shape} by {func._schema.name}"
                )
        return result

    def left(self) -> list[_Block]:
        """Lists the blocks that were allocated and are in use, in their order."""
        in_use = {
            block["address"]: (segment["device"], block["requested_size"])
            for segment in memory_snapshot()
            for block in segment["blocks"]
            if block["state"] == "active_allocated"
        }
        return [
            _Block(*in_use[address], f"{self.tensors.get(address, 'memory')}, {line}")
            for address, line in [*self.lines.items()]
            if address in in_use
        ]


def _address(value: object) -> int:
    """Returns where the memory of a tensor of the device begins, or 0."""
    if not isinstance(value, torch.Tensor) or value.device.type != device_type():
        return 0
    if value.layout != torch.strided or value.is_nested:
        return 0
    return value.untyped_storage().data_ptr()


_ledgers: list[_Ledger] = []
_lock = threading.Lock()
_tracing = False


def _start_tracing() -> None:
    """Listens to the GPU trace, once: PyTorch does not switch it off again."""
    global _tracing
    with _lock:
        if _tracing:
            return
        _gpu_trace.activate("assert_no_leak:")

        def listener(note: Callable[[_Ledger, int], None]) -> Callable[[int], None]:
            def listen(address: int) -> None:
                for ledger in [*_ledgers]:
                    note(ledger, address)

            return listen

        _gpu_trace.MemoryAllocationCallbacks.add_callback(listener(_Ledger.allocated))
        _gpu_trace.MemoryDeallocationCallbacks.add_callback(listener(_Ledger.freed))
        _tracing = True


@contextmanager
def assert_no_leak(
    device: torch.device | str | int | None = None, *, strict: bool = False
) -> Iterator[None]:
    """Fails if more device memory is in use after the block than before it.

    Garbage is collected before each count, so cycles of references are no leak; and
    the devices are waited for, as work that they have keeps its memory. What a first
    call makes for good, such as the state of an optimizer, counts as well: call it once
    before.

    Memory that the block gives back and did not allocate makes up for a leak. A strict
    comparison leaves it out: each allocation of the block has to be given back. New
    gradients in the place of old ones then count, too.

    Args:
        device: Device, index or name; all devices by default.
        strict: Whether no memory that was allocated in the block may be left, whatever
            else was given back.

    Raises:
        AssertionError: At the end, if memory is left; it names the size, shape, type,
            operator and line of each block. An error of the block itself goes on
            instead.
        RuntimeError: If there is no device of this index, or ``OPENREG_DISABLE`` names
            ``gpu_trace`` or ``device_module``.
    """
    devices = (
        [*range(device_count())] if device is None else [valid_device_index(device)]
    )
    _start_tracing()
    before = _count(devices)
    ledger = _Ledger()
    _ledgers.append(ledger)
    try:
        with ledger:
            yield
        after = _count(devices)
        blocks = ledger.left()
    finally:
        _ledgers.remove(ledger)
    lines = []
    for index in devices:
        mine = [block for block in blocks if block.device == index]
        left = after[index] - before[index]
        if left <= 0 and not (strict and mine):
            continue
        if strict:
            left = sum(block.size for block in mine)
        lines.append(f"{left} bytes are left on {device_type()}:{index}:")
        lines += [f"  {block.size} bytes: {block.made}" for block in mine] or [
            "  not allocated by a thread of Python"
        ]
    if lines:
        raise AssertionError("\n".join(lines))


def _count(devices: Sequence[int]) -> dict[int, int]:
    with own_work():
        gc.collect()
        for index in devices:
            synchronize(index)
    return {index: memory_allocated(index) for index in devices}
