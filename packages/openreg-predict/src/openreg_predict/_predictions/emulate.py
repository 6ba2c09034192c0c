# SPDX-License-Identifier: BSD-3-Clause
"""Virtual time and memory inside of a program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from openreg_predict._devices.description import DescribedDevice, load_device
from openreg_predict._memory.allocator import Block, CachingAllocator, OutOfMemoryError
from openreg_predict._memory.replay import CONTEXT
from openreg_predict._predictions.predict import mark_times
from openreg_predict._predictions.record import Record, record
from openreg_predict._records.record import Alloc, Event, Free
from openreg_predict._reports.text import size_text


@contextmanager
def emulate(
    device: DescribedDevice | str | Path, *, dry: bool = False
) -> Iterator[Record]:
    """Makes a block of a program see the time and the memory of a described device.

    ``torch.openreg.Event.elapsed_time`` returns virtual time. The memory statistics,
    the total memory and ``torch.OutOfMemoryError`` follow the described device, and
    begin empty. This covers the functions of ``torch.openreg``, ``torch.accelerator``
    and, if the device has that name, ``torch.cuda``. Without ``dry``, the device must
    have enough real memory; see ``OPENREG_DEVICE_MEMORY``.

    Args:
        device: A device, the name of one, or the path of its YAML file.
        dry: Whether to compute nothing, as :func:`openreg_predict.record` does.

    Yields:
        The record of the block.
    """
    if not isinstance(device, DescribedDevice):
        device = load_device(device)
    with record(dry=dry) as result:
        events = _Events(device)
        events.extend(result.events)
        _redirect(result, events)
        with ExitStack() as stack:
            for patch in _patches(device, result, events):
                stack.enter_context(patch)
            yield result


def _redirect(result: Record, events: _Events) -> None:
    """Makes the active recorder add to a list that allocates."""
    from openreg_predict._records import hooks

    recorder = hooks._active
    assert recorder is not None
    result.events = recorder.events = events


class _Events(list[Event]):
    """The events of a record; allocations go through the allocator of the device."""

    def __init__(self, device: DescribedDevice) -> None:
        super().__init__()
        self.device = device
        self.context = int(device.get("context_memory") or CONTEXT)
        self.capacity = int(device["memory_capacity"])
        self.memory: dict[int, CachingAllocator] = {}
        self.blocks: dict[int, tuple[int, Block]] = {}

    def of(self, index: int) -> CachingAllocator:
        """Returns the allocator of a device of the program."""
        if index not in self.memory:
            self.memory[index] = CachingAllocator(self.capacity - self.context)
        return self.memory[index]

    def append(self, event: Event) -> None:
        """Adds an event.

        Raises:
            torch.OutOfMemoryError: If the described device does not have the memory.
        """
        super().append(event)
        if isinstance(event, Alloc):
            allocator = self.of(event.device)
            try:
                block = allocator.malloc(event.size, event.stream)
            except OutOfMemoryError as error:
                raise torch.OutOfMemoryError(self._text(event, allocator)) from error
            self.blocks[event.storage] = event.device, block
        elif isinstance(event, Free) and event.storage in self.blocks:
            index, block = self.blocks.pop(event.storage)
            self.of(index).free(block)

    def _text(self, event: Alloc, allocator: CachingAllocator) -> str:
        free = self.capacity - self.context - allocator.reserved
        return (
            f"{self.device.name} out of memory. Tried to allocate "
            f"{size_text(event.size)}. Device {event.device} has a total capacity of "
            f"{size_text(self.capacity)} of which {size_text(free)} is free. "
            f"{size_text(allocator.allocated)} is allocated by PyTorch, and "
            f"{size_text(allocator.reserved - allocator.allocated)} is reserved by "
            "PyTorch but unallocated."
        )


def _patches(device: DescribedDevice, result: Record, events: _Events) -> Iterator[Any]:
    """Returns the replacements of functions, for the duration of the block."""
    from torch_openreg import openreg
    from torch_openreg.openreg import streams

    def of(which: object = None) -> CachingAllocator:
        index = torch.accelerator.current_device_index()
        if isinstance(which, int):
            index = which
        elif which is not None:
            index = torch.device(which).index or 0  # type: ignore[call-overload]
        return events.of(index)

    def info(which: object = None) -> tuple[int, int]:
        free = events.capacity - events.context - of(which).reserved
        return free, events.capacity

    def reset(which: object = None) -> None:
        allocator = of(which)
        allocator.allocated_peak = allocator.allocated
        allocator.reserved_peak = allocator.reserved

    def empty() -> None:
        for each in events.memory.values():
            each.empty_cache()

    replaced = {
        "memory_allocated": lambda which=None: of(which).allocated,
        "max_memory_allocated": lambda which=None: of(which).allocated_peak,
        "memory_reserved": lambda which=None: of(which).reserved,
        "max_memory_reserved": lambda which=None: of(which).reserved_peak,
        "reset_peak_memory_stats": reset,
        "mem_get_info": info,
        "get_memory_info": info,
        "empty_cache": empty,
    }
    modules: list[Any] = [openreg, torch.accelerator]
    if torch.accelerator.current_accelerator() == torch.device("cuda"):
        modules.append(torch.cuda)
    for module in modules:
        for name, function in replaced.items():
            if hasattr(module, name):
                yield mock.patch.object(module, name, function)

    class VirtualEvent(streams.Event):
        """An event that shows virtual time."""

        def elapsed_time(self, other: torch.Event) -> float:
            """Returns the virtual time until another event in milliseconds."""
            return _elapsed(device, result, self, other)

    for module in modules:
        if hasattr(module, "Event"):
            yield mock.patch.object(module, "Event", VirtualEvent)


def _elapsed(
    device: DescribedDevice, result: Record, start: torch.Event, end: torch.Event
) -> float:
    from openreg_predict._records import hooks

    marks = [hooks._marks.get(each.event_id) for each in (start, end)]
    if None in marks:
        raise RuntimeError("elapsed_time: an event was not recorded in this emulation")
    times = mark_times(result, device)
    first, last = (times[mark or 0] for mark in marks)
    return (last - first) * 1e3
