# SPDX-License-Identifier: BSD-3-Clause
"""Compares each operator with the earlier ones that use the same memory."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.cuda._sanitizer import zip_arguments
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._pytree import tree_leaves

from openreg_aten import _C
from torch_openreg._lines import Place
from torch_openreg._waits import COPIES, UNTAGGED, cause_of_wait
from torch_openreg.openreg._utils import device_type
from torch_openreg.openreg.streams import default_stream

from ._errors import Access, UnsynchronizedAccessError, UseAfterFreeError
from ._memory import (
    Life,
    Memory,
    Region,
    Use,
    overlap,
    region_of,
    storage_address,
)
from ._order import HOST, Order

aten = torch.ops.aten

# They leave the memory of what they make as it is.
_EMPTY = {
    aten.empty,
    aten.empty_like,
    aten.empty_permuted,
    aten.empty_strided,
    aten.new_empty,
    aten.new_empty_strided,
}
# Of their arguments they look at the sizes only.
_LIKE = {
    *_EMPTY,
    aten.full_like,
    aten.new_full,
    aten.new_ones,
    aten.new_zeros,
    aten.ones_like,
    aten.rand_like,
    aten.randint_like,
    aten.randn_like,
    aten.zeros_like,
}
# No kernel runs for these.
_NO_KERNEL = {aten._unsafe_view, aten.record_stream}

_COMPRESSED = {
    torch.sparse_csr: ("crow_indices", "col_indices"),
    torch.sparse_bsr: ("crow_indices", "col_indices"),
    torch.sparse_csc: ("ccol_indices", "row_indices"),
    torch.sparse_bsc: ("ccol_indices", "row_indices"),
}


class _Operand(NamedTuple):
    tensor: torch.Tensor
    name: str
    reads: bool
    writes: bool


@dataclass
class Call:
    """An operator that has begun.

    Attributes:
        func: The operator.
        number: Its place in the order of the program.
        place: The line of the program.
        storages: Addresses of its arguments' storages.
        streams: The stream to which each device's part goes.
        copies: Whether it copies between devices, or a device and the host.
        waits: Whether the host waits until it is completed.
    """

    func: torch._ops.OpOverload
    number: int
    place: Place | None
    storages: set[int]
    streams: dict[torch.device, int]
    copies: bool
    waits: bool


class _Freed(NamedTuple):
    address: int
    streams: list[int]
    place: Place | None


class Analysis:
    """What is known of all devices. Its methods may be called by any thread."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.order = Order()
        self._calls = 0
        self._device_memory = Memory()
        self._host_memory = Memory()  # what copies use that nobody waits for
        self._lives: dict[int, Life] = {}
        self._host_lives: dict[int, tuple[StorageWeakRef, Life]] = {}
        # Filled without the lock: a tensor may end anywhere, also where the lock's
        # owner collects garbage.
        self._freed: deque[_Freed] = deque()

    # ---- memory

    def note_allocation(self, address: int, place: Place | None) -> None:
        """Notes a block that has been handed out."""
        with self.lock:
            self.end_lives()
            self._lives[address] = _new_life(address, place)

    def note_free(self, address: int, place: Place | None) -> None:
        """Notes the end of a block, before the allocator learns of it."""
        block = _C.memory_block(address)
        if block is not None:
            self._freed.append(_Freed(address, block[-1], place))

    def end_lives(self) -> None:
        """Takes in what :meth:`note_free` noted: before any later event or wait."""
        while self._freed:
            freed = self._freed.popleft()
            life = self._lives.pop(freed.address, None)
            if life is not None:
                life.freed = freed.place
                life.waited_for = self.order.clock(freed.streams)

    def _life(self, tensor: torch.Tensor, place: Place | None) -> Life:
        address = storage_address(tensor)
        if tensor.device.type != "cpu":
            if address not in self._lives:
                self._lives[address] = _new_life(address, place)
            return self._lives[address]
        if address in self._host_lives:
            storage, life = self._host_lives[address]
            if not storage.expired():  # type: ignore[no-untyped-call]
                return life
        storage = StorageWeakRef(tensor.untyped_storage())  # type: ignore[no-untyped-call]
        # A segment of its own: the allocator waits for the copies before it hands
        # pinned memory out again.
        life = Life(segment=storage, stream=HOST, allocated=None)
        self._host_lives[address] = storage, life
        return life

    # ---- synchronization

    def synchronize_device(self, device: int) -> None:
        """Notes that the host waits for a device."""
        with self.lock:
            self.order.synchronize_device(device)
            self._device_memory.prune(self._is_over)

    def _is_over(self, use: Use) -> bool:
        return self.order.is_ordered_after(HOST, use.number, use.stream)

    def _is_past(self, use: Use) -> bool:
        """Tells whether nothing on the host can come too early any more."""
        storage = use.life.segment
        assert isinstance(storage, StorageWeakRef)
        return storage.expired() or self._is_over(use)  # type: ignore[no-untyped-call]

    # ---- operators

    def begin(
        self,
        func: torch._ops.OpOverload,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        place: Place | None,
    ) -> Call:
        """Notes an operator that is about to be called.

        Raises:
            UnsynchronizedAccessError: If an argument may still be in use elsewhere.
        """
        operands = list(_arguments(func, args, kwargs))
        devices = {each.tensor.device for each in operands} | _target(func, kwargs)
        devices = {device for device in devices if device.type == device_type()}
        with self.lock:
            self.end_lives()
            self._calls += 1
            call = Call(
                func,
                self._calls,
                place,
                {storage_address(each.tensor) for each in operands},
                {},
                bool(devices) and func._schema.name in COPIES,
                bool(devices) and cause_of_wait(func, args, kwargs) is not None,
            )
            self._launch(call, devices)
            if call.copies:
                self.order.wait_for_each_other([*call.streams.values()])
            if _has_kernel(func):
                self._use(call, operands, called=False)
        return call

    def end(self, call: Call, result: Any) -> None:
        """Notes what an operator has returned.

        Raises:
            UnsynchronizedAccessError: If it lies in memory that may still be in use.
        """
        made = [
            _Operand(tensor, "output", reads=False, writes=_fills(call.func))
            for tensor in _strided(result)
            if storage_address(tensor) not in call.storages
        ]
        devices = {each.tensor.device for each in made}
        with self.lock:
            self.end_lives()
            self._launch(call, {d for d in devices if d.type == device_type()})
            try:
                self._use(call, made, called=True)
            finally:
                if call.copies:
                    self.order.wait_for_each_other([*call.streams.values()])
                if call.waits:
                    for stream in call.streams.values():
                        self.order.all_streams_wait_for_stream(stream)

    def _launch(self, call: Call, devices: set[torch.device]) -> None:
        for device in devices - call.streams.keys():
            call.streams[device] = _current_stream(device)
            self.order.launch(call.streams[device], device.index, call.number)

    def _use(self, call: Call, operands: list[_Operand], *, called: bool) -> None:
        uses: dict[Region, tuple[Memory, Use, bool]] = {}
        if self._host_memory:
            self._host_memory.prune(self._is_past)
        for tensor, name, reads, writes in operands:
            region = region_of(tensor)
            if region is None or not (reads or writes):
                continue
            if region in uses:
                use = uses[region][1]
                use.writes = use.writes or writes
                use.arguments.append(name)
                continue
            memory, stream, kept = self._user(call, tensor)
            if not (kept or memory.uses(region, writes=True)):
                continue
            life = self._life(tensor, call.place)
            use = Use(
                number=call.number,
                stream=stream,
                device=next((d for d, s in call.streams.items() if s == stream), None),
                writes=writes,
                region=region,
                life=life,
                operator=call.func._schema,
                arguments=[name],
                place=call.place,
            )
            uses[region] = memory, use, kept
        conflict = None
        for memory, use, _ in uses.values():
            conflict = conflict or self._find(memory, use)
        if called or conflict is None:  # otherwise the operator is not called
            for memory, use, kept in uses.values():
                if kept:
                    memory.add(use)
        if conflict is not None:
            # Not by a name of ours: the traceback would hold the frame, which holds
            # the error, and the program's tensors with them.
            raise _error(*conflict)

    def _user(self, call: Call, tensor: torch.Tensor) -> tuple[Memory, int, bool]:
        """Returns a tensor's memory, who uses it, and whether that is to be kept."""
        if tensor.device.type == device_type():
            return self._device_memory, call.streams[tensor.device], True
        if not call.copies:
            return self._host_memory, HOST, False
        (stream,) = call.streams.values()
        behind = not call.waits and tensor.is_pinned()
        return self._host_memory, stream if call.waits or behind else HOST, behind

    def _find(self, memory: Memory, use: Use) -> tuple[Use, Use] | None:
        for previous in memory.uses(use.region, writes=use.writes):
            if self._conflict(use, previous):
                return use, previous
        return None

    def _conflict(self, use: Use, previous: Use) -> bool:
        if previous.stream in (use.stream, HOST) or self.order.is_ordered_after(
            use.stream, previous.number, previous.stream
        ):
            return False
        if previous.life is not use.life:
            if previous.life.segment != use.life.segment:
                return False  # the device had it back in between
            over = previous.life.waited_for.get(previous.stream, -1)
            if previous.number <= over:
                return False
        return overlap(use.region, previous.region)


def _new_life(address: int, place: Place | None) -> Life:
    block = _C.memory_block(address)
    if block is None:  # memory of another process
        return Life(segment=object(), stream=HOST, allocated=place)
    _, segment, stream, _ = block
    return Life(segment, stream, place)


def _current_stream(device: torch.device) -> int:
    return _handle(torch._C._accelerator_getStream(device.index))


def _handle(stream: torch.Stream) -> int:
    """Returns what the GPU trace calls a stream."""
    handle: int = stream.native_handle  # type: ignore[attr-defined]
    return handle


# ---- what an operator does, by its schema


def _arguments(
    func: torch._ops.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[_Operand]:
    for argument, value in zip_arguments(func._schema, args, kwargs):
        alias = argument.alias_info
        writes = alias is not None and alias.is_write
        reads = alias is None and func.overloadpacket not in _LIKE
        for tensor in _strided(value):
            yield _Operand(tensor, argument.name, reads, writes)


def _target(func: torch._ops.OpOverload, kwargs: dict[str, Any]) -> set[torch.device]:
    """Returns the device that a copy goes to."""
    device = kwargs.get("device")
    if device is None or func._schema.name not in COPIES:
        return set()
    device = torch.device(device)
    if device.type == device_type() and device.index is None:
        device = torch.device(device.type, _C.current_device())
    return {device}


@cache
def _has_kernel(func: torch._ops.OpOverload) -> bool:
    """Tells whether an operator looks at more than the metadata of its arguments."""
    if func.overloadpacket in _NO_KERNEL or torch.Tag.inplace_view in func.tags:
        return False
    schema = func._schema
    return (
        any(each.alias_info and each.alias_info.is_write for each in schema.arguments)
        or any("Tensor" in str(each.type) for each in schema.returns)
        or torch.Tag.data_dependent_output in func.tags
        or schema.name in UNTAGGED
    )


@cache
def _fills(func: torch._ops.OpOverload) -> bool:
    """Tells whether an operator writes to the tensors that it makes."""
    return func.overloadpacket not in _EMPTY and _has_kernel(func)


# ---- tensors


def _strided(value: object) -> Iterator[torch.Tensor]:
    """Yields the tensors with strides that values are made of."""
    if not isinstance(value, (torch.Tensor, list, tuple, dict)):
        return  # as most arguments, and looking for leaves takes time
    for leaf in [value] if isinstance(value, torch.Tensor) else tree_leaves(value):
        if not isinstance(leaf, torch.Tensor) or isinstance(leaf, FakeTensor):
            continue
        if leaf.device.type not in ("cpu", device_type()):
            continue
        if leaf.is_nested:
            yield leaf.values()
        elif leaf.layout == torch.strided:
            yield leaf
        elif leaf.layout == torch.sparse_coo:
            yield leaf._indices()
            yield leaf._values()
        elif leaf.layout in _COMPRESSED:
            for indices in _COMPRESSED[leaf.layout]:
                yield getattr(leaf, indices)()
            yield leaf.values()


# ---- reports


def _error(use: Use, previous: Use) -> UnsynchronizedAccessError:
    current, earlier = _access(use), _access(previous)
    address = max(use.region.start, previous.region.start)
    allocated = _line(use.life.allocated)
    if previous.life is use.life:
        advice = (
            "The host has to wait for the stream first: synchronize it, its device or "
            "an event."
            if use.stream == HOST
            else "One stream has to wait for the other: by wait_stream, or by an event."
        )
        return UnsynchronizedAccessError(current, earlier, address, allocated, advice)
    advice = (
        "A stream has to wait for the one that its memory was allocated for."
        if previous.stream == previous.life.stream
        else "record_stream keeps memory until another stream is done with it: call it "
        "before the tensor ends."
    )
    return UseAfterFreeError(
        current,
        earlier,
        address,
        allocated,
        advice,
        freed=_line(previous.life.freed),
        previously_allocated=_line(previous.life.allocated),
    )


def _line(place: Place | None) -> str | None:
    return None if place is None else str(place)


def _access(use: Use) -> Access:
    return Access(
        str(use.operator),
        use.writes,
        tuple(use.arguments),
        _words(use),
        _line(use.place) or "unknown line",
    )


def _words(use: Use) -> str:
    """Says who uses memory."""
    if use.device is None:
        return "the host"
    if use.stream == _handle(default_stream(use.device)):
        return f"the default stream of {use.device}"
    return f"stream {use.stream} of {use.device}"
