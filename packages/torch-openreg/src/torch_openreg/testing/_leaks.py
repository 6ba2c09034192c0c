# SPDX-License-Identifier: BSD-3-Clause
"""Finds device memory that a program block does not free."""

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
    """Records every allocated memory block, and the tensors in it.

    The GPU trace reports blocks of all threads. The operators of the entering thread
    determine the tensor of a block.
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
        """Lists the allocated blocks that are still in use, in order."""
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
    """Returns the address of a device tensor's memory, or 0."""
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

    Garbage is collected before each count, so reference cycles do not count as leaks,
    and the devices are synchronized, because pending work keeps its memory. Permanent
    state of a first call, such as optimizer state, counts as a leak: make the call once
    before.

    Earlier memory that the block frees compensates for a leak. A strict comparison
    ignores it: each allocation of the block must be freed. New gradients that replace
    old ones then count, too.

    Args:
        device: Device, index or name; all devices by default.
        strict: Whether all memory allocated in the block must be freed, whatever else
            was freed.

    Raises:
        AssertionError: At the end, if memory is left; it lists the size, shape, dtype,
            operator and line of each block. An error of the block itself takes
            precedence.
        RuntimeError: If the device does not exist, or ``OPENREG_DISABLE`` names
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
