# SPDX-License-Identifier: BSD-3-Clause
"""The memory of a recorded run on a described device.

The allocations of the record, in the order of the host, go through the rules of CUDA's
caching allocator. The memory that CUDA and its libraries take in addition is a field of
the device's file, or one of the defaults below.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from openreg_predict._devices.description import DescribedDevice
from openreg_predict._memory.allocator import (
    Block,
    CachingAllocator,
    OutOfMemoryError,
    block_size,
)
from openreg_predict._records.record import OWNERS, Alloc, Free, Op, RecordedRun

# Bytes, where the device's file has no field. A context of CUDA 12 with the modules of
# PyTorch takes 300 to 600 MB; NCCL's buffers took 342 to 392 MB.
CONTEXT = 500 * 10**6
COLLECTIVES = 370 * 10**6
# The workspace of cuBLAS that PyTorch allocates for each stream: 4 MiB and 4 MiB, and
# 8 times 16 KiB; 32 MiB from Hopper on.
WORKSPACE = 8_519_680
WORKSPACE_HOPPER = 32 << 20
_WORKSPACES = -1  # the number of the first stream's workspace; the others follow
_POINTS = 400  # of a curve
# Bounds of a peak, as factors: what kernels allocate while they run is not recorded.
_BELOW, _ABOVE = 0.96, 1.08


@dataclass(frozen=True)
class MemoryUse:
    """The device memory during a run, in bytes.

    Attributes:
        device: The index of the device.
        allocated_peak: The largest sum of the blocks in use.
        reserved_peak: The largest sum of the segments; what the process takes from the
            device, besides ``context``.
        fragmentation: The share of the reserved memory that is not in use when the most
            is reserved.
        holders: The bytes in use at the peak, by owner.
        modules: The activations at the peak, by the module that made them.
        context: The context and the buffers of collectives.
        capacity: The device memory.
        retries: How often the cache has to be emptied because memory is short.
        out_of_memory: The bytes that are missing when the first request fails, or 0.
        curve: The bytes in use and those reserved, at some places of the run.
    """

    device: int
    allocated_peak: int
    reserved_peak: int
    fragmentation: float
    holders: Mapping[str, int]
    modules: Mapping[str, int]
    context: int
    capacity: int
    retries: int = 0
    out_of_memory: int = 0
    curve: Sequence[tuple[int, int]] = ()

    @property
    def total(self) -> int:
        """The memory that the process takes from the device at most."""
        return self.reserved_peak + self.context

    @property
    def fits(self) -> bool:
        """Whether the run ends without an error of memory."""
        return not self.out_of_memory

    @property
    def spare(self) -> int:
        """The bytes that are left at the peak; negative if they are missing."""
        return self.capacity - self.context - self.reserved_peak

    def bounds(self) -> tuple[int, int]:
        """Returns the bounds of the peak of reserved memory."""
        return int(self.reserved_peak * _BELOW), int(self.reserved_peak * _ABOVE)

    def to_dict(self) -> dict[str, Any]:
        """Returns the values for JSON."""
        return {
            "device": self.device,
            "allocated_peak": self.allocated_peak,
            "reserved_peak": self.reserved_peak,
            "fragmentation": self.fragmentation,
            "holders": dict(self.holders),
            "modules": dict(self.modules),
            "context": self.context,
            "capacity": self.capacity,
            "retries": self.retries,
            "fits": self.fits,
            "spare": self.spare,
            "out_of_memory": self.out_of_memory,
        }


@dataclass(frozen=True)
class Plan:
    """A change of the allocations of a record.

    Attributes:
        size: The bytes of a storage, from its owner and its bytes; ``None`` keeps them.
        elided: Storages that do not exist.
        kept: Storages that live at least until the event with an index.
        dropped: Storages that do not exist between two events.
        ended: Storages that end at the event with an index, before they are released.
    """

    size: Callable[[str, int], int] | None = None
    elided: Collection[int] = ()
    kept: Mapping[int, int] = field(default_factory=dict)
    dropped: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    ended: Mapping[int, int] = field(default_factory=dict)


class _Action(NamedTuple):
    """A request, or the end of a storage (size -1), at a place of the record."""

    place: int
    order: int
    storage: int
    size: int
    stream: int


class MemoryModel:
    """Replays the allocations of one record, for any device.

    Args:
        record: The record.
        products: The indices of the operators that need a workspace of cuBLAS.
        plan: Changes of compiled functions, or of the caller.
    """

    def __init__(
        self,
        record: RecordedRun,
        products: Collection[int] = (),
        plan: Plan | None = None,
    ) -> None:
        self.record = record
        self.products = products
        self.plan = plan or Plan()
        self.owners, self.made_in = owners_of(record)
        self.has_collectives = any(op.ranks > 1 for op in record.ops())

    def devices(self) -> list[int]:
        """Returns the indices of the devices that the run allocates on."""
        found = {each.device for each in self.record.initial}
        found |= {e.device for e in self.record.events if isinstance(e, Alloc)}
        return sorted(found) or [0]

    def use(
        self,
        device: DescribedDevice,
        index: int = 0,
        plan: Plan | None = None,
        *,
        expandable: bool = False,
    ) -> MemoryUse:
        """Returns the memory of the run on a device.

        Args:
            device: The described device.
            index: The index of the device in the program.
            plan: A change of the allocations; that of the model by default.
            expandable: Whether segments grow, as with the setting
                ``expandable_segments:True`` of ``PYTORCH_CUDA_ALLOC_CONF``.
        """
        context = int(device.get("context_memory") or CONTEXT)
        if self.has_collectives:
            context += int(device.get("collective_memory") or COLLECTIVES)
        capacity = int(device["memory_capacity"])
        actions = self._actions(index, plan or self.plan, _workspace(device))
        replay = _Replay(self, actions, expandable)
        replay.run(None)
        short = 0
        if replay.allocator.reserved_peak + context > capacity:
            limited = _Replay(self, actions, expandable)
            try:
                limited.run(capacity - context)
                replay = limited
            except OutOfMemoryError:
                short = replay.allocator.reserved_peak + context - capacity
        return replay.use(index, context, capacity, short)

    def _actions(self, index: int, plan: Plan, workspace: int) -> list[_Action]:
        """Returns the requests and ends of storages on one device, in order."""
        actions: list[_Action] = []
        sizes: dict[int, tuple[int, int]] = {}
        events = self.record.events

        def add(place: int, alloc: Alloc) -> None:
            size = alloc.size
            if plan.size is not None:
                size = plan.size(self.owners.get(alloc.storage, "other"), size)
            if alloc.device == index and alloc.storage not in plan.elided and size > 0:
                sizes[alloc.storage] = size, alloc.stream
                actions.append(_Action(place, 1, alloc.storage, size, alloc.stream))

        for each in self.record.initial:
            add(-1, each)
        streams: set[int] = set()
        for place, event in enumerate(events):
            if isinstance(event, Alloc):
                add(place, event)
            elif isinstance(event, Free) and event.storage in sizes:
                end = plan.ended.get(event.storage, place)
                until = max(end, plan.kept.get(event.storage, -1))
                actions.append(_Action(until, 2, event.storage, -1, 0))
            elif (
                place in self.products
                and isinstance(event, Op)
                and event.device == index
                and event.stream not in streams
            ):
                streams.add(event.stream)
                number = _WORKSPACES - event.stream
                actions.append(_Action(place, 0, number, workspace, event.stream))
        for storage, (after, before) in plan.dropped.items():
            if storage in sizes:
                actions.append(_Action(after, 2, storage, -1, 0))
                actions.append(_Action(before, 0, storage, *sizes[storage]))
        actions.sort(key=lambda each: each[:2])
        return actions


class _Replay:
    def __init__(
        self, model: MemoryModel, actions: list[_Action], expandable: bool
    ) -> None:
        self.expandable = expandable
        self.model = model
        self.actions = actions
        self.allocator = CachingAllocator()
        self.peak = -1
        self.unused = 0.0
        self.curve: list[tuple[int, int]] = []

    def run(self, capacity: int | None) -> None:
        allocator = CachingAllocator(capacity, expandable=self.expandable)
        self.allocator = allocator
        blocks: dict[int, Block] = {}
        every = max(len(self.actions) // _POINTS, 1)
        for number, (_, _, storage, size, stream) in enumerate(self.actions):
            if size < 0:
                gone = blocks.pop(storage, None)
                if gone is not None:
                    allocator.free(gone)
                continue
            if storage in blocks:
                continue
            most, reserved = allocator.allocated_peak, allocator.reserved_peak
            blocks[storage] = allocator.malloc(size, stream)
            if allocator.allocated_peak > most:
                self.peak = number
            if number % every == 0 or allocator.allocated_peak > most:
                self.curve.append((allocator.allocated, allocator.reserved))
            if allocator.reserved_peak > reserved:
                self.unused = 1 - allocator.allocated / allocator.reserved

    def use(self, index: int, context: int, capacity: int, short: int) -> MemoryUse:
        live: dict[int, int] = {}
        for each in self.actions[: self.peak + 1]:
            if each.size < 0:
                live.pop(each.storage, None)
            else:
                live.setdefault(each.storage, block_size(each.size))
        holders: dict[str, int] = dict.fromkeys(("workspace", *OWNERS), 0)
        modules: dict[str, int] = defaultdict(int)
        names = self.model.record.modules
        for storage, size in live.items():
            owner = "workspace"
            if storage > 0:
                owner = self.model.owners.get(storage, "other")
            holders[owner] += size
            if owner == "activations":
                modules[names[self.model.made_in.get(storage, 0)]] += size
        allocator = self.allocator
        return MemoryUse(
            index,
            allocator.allocated_peak,
            allocator.reserved_peak,
            self.unused,
            {owner: size for owner, size in holders.items() if size},
            dict(sorted(modules.items(), key=lambda each: -each[1])),
            context,
            capacity,
            allocator.retries,
            short,
            self.curve[:: max(len(self.curve) // _POINTS, 1)],
        )


def _workspace(device: DescribedDevice) -> int:
    given = device.get("workspace_memory")
    if given is not None:
        return int(given)
    if device.vendor == "nvidia" and device.generation in ("hopper", "blackwell"):
        return WORKSPACE_HOPPER
    return WORKSPACE


def owners_of(record: RecordedRun) -> tuple[dict[int, str], dict[int, int]]:
    """Returns the owner of each storage, and the module in which it was made.

    A storage without a known owner holds activations if it is made in the forward pass
    and read in the backward pass, and otherwise temporary tensors.
    """
    owners = dict(record.owners)
    made_in: dict[int, int] = {}
    phases: dict[int, str] = {}
    for event in record.events:
        if isinstance(event, Alloc):
            phases.setdefault(event.storage, event.phase)
            if event.phase != "forward":
                owners.setdefault(event.storage, "temporaries")
        elif isinstance(event, Op):
            for each in event.call.results:
                if each.storage is not None:
                    made_in.setdefault(each.storage, event.module)
            if event.phase == "backward":
                for each in event.call.tensors():
                    if phases.get(each.storage or 0) == "forward":
                        owners.setdefault(each.storage or 0, "activations")
    for storage in phases:
        owners.setdefault(storage, "temporaries")
    return owners, made_in
