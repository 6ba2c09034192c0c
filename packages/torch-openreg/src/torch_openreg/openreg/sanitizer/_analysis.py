# SPDX-License-Identifier: BSD-3-Clause
"""Compares each operator with earlier operators that use the same memory."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.cuda._sanitizer import zip_arguments
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._pytree import tree_leaves

from openreg_aten import _C
from torch_openreg._facts.operators import COPIES, OUTPUTS, UNTAGGED
from torch_openreg._lines import Place, user_place
from torch_openreg._waits import cause_of_wait
from torch_openreg.openreg._utils import device_type
from torch_openreg.openreg.streams import default_stream

from ._errors import (
    Access,
    UninitializedReadError,
    UnsynchronizedAccessError,
    UseAfterFreeError,
)
from ._graphs import Capture, is_host
from ._host_writes import PendingReads
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
from ._unwritten import Moved, Operand, Read, Unwritten

aten = torch.ops.aten

# Operators that do not write to the memory of their result.
_EMPTY = {
    aten.empty,
    aten.empty_like,
    aten.empty_permuted,
    aten.empty_strided,
    aten.new_empty,
    aten.new_empty_strided,
}
# Operators that may replace the memory of an argument.
_RESIZES = {aten.resize_, aten.resize_as_}
# Operators that only read the sizes of their arguments.
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
# Operators without a kernel.
_NO_KERNEL = {aten._unsafe_view, aten.record_stream}

_COMPRESSED = {
    torch.sparse_csr: ("crow_indices", "col_indices"),
    torch.sparse_bsr: ("crow_indices", "col_indices"),
    torch.sparse_csc: ("ccol_indices", "row_indices"),
    torch.sparse_bsc: ("ccol_indices", "row_indices"),
}


@dataclass
class Call:
    """A running operator.

    Attributes:
        operator: Its schema, or the name of a compiled kernel.
        number: Its number in program order.
        place: The program line.
        storages: Addresses of its arguments' storages.
        streams: The stream of each device.
        captures: The captures of captured streams.
        copies: Whether it copies between devices, or a device and the host.
        waits: Whether the host waits for its completion.
        moved: The unwritten elements of its result, if there are any.
        resized: The tensor that it resizes, and the bytes of its storage.
    """

    operator: torch.FunctionSchema | str
    number: int
    place: Place | None
    storages: set[int]
    streams: dict[torch.device, int]
    captures: dict[int, Capture]
    copies: bool
    waits: bool
    moved: Moved | None = None
    resized: tuple[torch.Tensor, int, int] | None = None


class _Freed(NamedTuple):
    address: int
    streams: list[int]
    place: Place | None


class Analysis:
    """The state of all devices. Any thread may call its methods.

    Args:
        unwritten: Whether it looks for reads of unwritten memory.
    """

    def __init__(self, *, unwritten: bool) -> None:
        self._unwritten = Unwritten() if unwritten else None
        self.lock = threading.RLock()
        self.order = Order()
        self._calls = 0
        self._device_memory = Memory()
        self._host_memory = Memory()  # used by asynchronous copies
        self._lives: dict[int, Life] = {}
        self._host_lives: dict[int, tuple[StorageWeakRef, Life]] = {}
        # Filled without the lock, because a tensor may be freed anywhere, even in a
        # garbage collection of the lock's owner.
        self._freed: deque[_Freed] = deque()
        self._ended_graphs: deque[int] = deque()
        self._host_reads = PendingReads()
        self._host_writes: deque[UnsynchronizedAccessError] = deque()  # not raised yet
        self._captures: dict[int, Capture] = {}  # including replayable graphs
        self._captured_events: dict[int, Capture] = {}

    # ---- memory

    def note_allocation(self, address: int, place: Place | None) -> None:
        """Notes an allocated block."""
        with self.lock:
            self.end_lives()
            life = _new_life(address, place)
            life.capture = self._capture_of(life.stream)
            self._lives[address] = life
            if self._unwritten:
                self._unwritten.drop(address)

    def note_free(self, address: int, place: Place | None) -> None:
        """Notes a free, before the allocator processes it."""
        block = _C.memory_block(address)
        if block is not None:
            self._freed.append(_Freed(address, block[-1], place))

    def end_lives(self) -> None:
        """Processes notes taken without the lock, before later events and waits."""
        while self._freed:
            freed = self._freed.popleft()
            life = self._lives.pop(freed.address, None)
            if self._unwritten:
                self._unwritten.drop(freed.address)
            if life is not None:
                capture = life.capture
                order = capture.order if capture and capture.underway else self.order
                life.ended = True
                life.freed = freed.place
                life.waited_for, life.waited_in = order.clock(freed.streams), order
        while self._ended_graphs:
            self._captures.pop(self._ended_graphs.popleft(), None)

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
        # A separate segment: the allocator waits for the copies before it reuses pinned
        # memory.
        life = Life(segment=storage, stream=HOST, allocated=None)
        self._host_lives[address] = storage, life
        return life

    # ---- synchronization

    def synchronize_device(self, device: int) -> None:
        """Notes that the host waits for a device."""
        with self.lock:
            self.order.synchronize_device(device)
            self._device_memory.prune(self._is_over)

    def find_host_writes(self, thread: int, *, at_end: bool = False) -> None:
        """Looks for writes without an operator, when the host may have waited.

        Args:
            thread: The program's thread.
            at_end: Whether the analysis ends.
        """
        with self.lock:
            if self._host_reads:
                is_over = (lambda _: True) if at_end else self._is_over
                changed = self._host_reads.take_changed(is_over)
                self._note_host_writes(changed, user_place(thread))

    def _note_host_writes(self, reads: list[Use], place: Place | None) -> None:
        for read in reads:
            self._host_writes.append(_host_write_error(read, place))

    def raise_host_write(self) -> None:
        """Raises the error of a write without an operator, if one was found.

        Raises:
            UnsynchronizedAccessError: The first error that was not raised yet.
        """
        with suppress(IndexError):  # no error, or another thread raises it
            raise self._host_writes.popleft()

    def _is_over(self, use: Use) -> bool:
        return self.order.is_ordered_after(HOST, use.number, use.stream)

    def _is_past(self, use: Use) -> bool:
        """Returns whether no later host access can come too early."""
        storage = use.life.segment
        assert isinstance(storage, StorageWeakRef)
        return storage.expired() or self._is_over(use)  # type: ignore[no-untyped-call]

    def record_event(self, event: int, stream: int) -> None:
        """Notes that an event was recorded on a stream."""
        capture = self._capture_of(stream)
        if capture is None:
            self._captured_events.pop(event, None)
            self.order.record_state(event, stream)
        else:
            self._captured_events[event] = capture
            capture.order.record_state(event, stream)

    def wait_for_event(self, stream: int, event: int) -> None:
        """Notes that a stream, or the host, waits for an event."""
        capture = self._captured_events.get(event)
        if capture is None:
            self.order.wait_for_event(stream, event)
        elif stream != HOST:  # the host cannot wait for captured work
            capture.order.wait_for_event(stream, event)

    def delete_event(self, event: int) -> None:
        """Notes that an event was destroyed."""
        self._captured_events.pop(event, None)
        self.order.delete_event(event)

    # ---- graphs

    def _capture_of(self, stream: int) -> Capture | None:
        """Returns the capture of a stream."""
        number = _C.capture_id(stream)
        if not number:
            return None
        if number not in self._captures:  # it began before the sanitizer was enabled
            self._captures[number] = Capture()
        return self._captures[number]

    def begin_capture(self, number: int) -> None:
        """Notes that a capture begins."""
        with self.lock:
            self.end_lives()
            self._captures[number] = Capture()

    def end_capture(self, number: int, *, failed: bool) -> None:
        """Notes that a capture has ended.

        Raises:
            UnsynchronizedAccessError: If the capture failed and one of its operators
                was reported: the report replaces the failure's error.
        """
        with self.lock:
            self.end_lives()
            capture = self._captures.get(number)
            if capture is None:
                return
            capture.end()
            conflict = capture.conflict if failed else None
        if conflict is not None:
            raise _error(*conflict)

    def note_end_of_graph(self, number: int) -> None:
        """Notes that a graph was destroyed."""
        self._ended_graphs.append(number)

    def replay(
        self, number: int, stream: int, device: int, place: Place | None
    ) -> None:
        """Notes that a graph is about to be replayed on a stream.

        Raises:
            UnsynchronizedAccessError: If the graph's memory may still be in use
                elsewhere, or was freed.
        """
        self.raise_host_write()
        with self.lock:
            self.end_lives()
            capture = self._captures.get(number)
            if capture is None:
                return
            self._calls += 1
            self.order.launch(stream, device, self._calls)
            self.order.wait_for_clock(stream, capture.last)
            where = torch.device(device_type(), device)
            uses = capture.replay(self._calls, stream, where, place)
            for use in uses:
                if use.life.ended and use.life.capture is None:
                    raise _freed_error(use)
            conflict = None
            for use in uses:
                conflict = conflict or self._find(self._memory_of(use), use, self.order)
            if conflict is not None:
                raise _error(*conflict)
            for use in uses:
                if self._unwritten and not is_host(use):
                    read = self._unwritten.replay(use.region, writes=use.writes)
                    if read is not None:
                        raise _replayed_read_error(use, *read)
                if is_host(use):
                    self._watch_host_memory(use)
                self._memory_of(use).add(use)
            capture.last = self.order.clock([stream])

    def _memory_of(self, use: Use) -> Memory:
        return self._host_memory if is_host(use) else self._device_memory

    def _watch_host_memory(self, use: Use) -> None:
        """Notes that a stream is about to access pinned memory."""
        if use.writes:
            changed = self._host_reads.take_changed_in(use.region)
            self._note_host_writes(changed, use.place)
            return
        pending = self._host_memory.uses(use.region, writes=False)
        if all(map(self._is_over, pending)):  # else a stream writes to it first
            self._host_reads.add(use)

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
        self.raise_host_write()
        operands = list(_arguments(func, args, kwargs))
        devices = {each.tensor.device for each in operands} | _target(func, kwargs)
        devices = {device for device in devices if device.type == device_type()}
        with self.lock:
            self.end_lives()
            self._calls += 1
            call = Call(
                func._schema,
                self._calls,
                place,
                {storage_address(each.tensor) for each in operands},
                {},
                {},
                bool(devices) and func._schema.name in COPIES,
                bool(devices) and cause_of_wait(func, args, kwargs) is not None,
            )
            self._launch(call, devices)
            self._join_copies(call)
            if _has_kernel(func):
                self._use(call, operands, called=False)
            if self._unwritten is not None:
                self._note_unwritten(call, func, args, kwargs, operands)
        return call

    def _note_unwritten(
        self,
        call: Call,
        func: torch._ops.OpOverload,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        operands: list[Operand],
    ) -> None:
        """Notes the unwritten memory that an operator reads, moves or resizes.

        Raises:
            UninitializedReadError: If it reads unwritten memory.
        """
        assert self._unwritten is not None
        if func.overloadpacket in _RESIZES:
            tensor = args[0]
            size = tensor.untyped_storage().nbytes()
            call.resized = tensor, storage_address(tensor), size
        elif (
            _has_kernel(func)
            and func.overloadpacket not in _LIKE
            and self._unwritten.uses(operands)
        ):
            found = self._unwritten.call(
                func, args, kwargs, operands, bool(call.captures)
            )
            if isinstance(found, Read):
                raise self._read_error(call, found)
            call.moved = found

    def _note_unwritten_results(
        self, call: Call, func: torch._ops.OpOverload, made: list[Operand]
    ) -> None:
        """Notes the unwritten memory of results, or of a tensor that was resized."""
        assert self._unwritten is not None
        captured = bool(call.captures)
        for tensor, *_ in made:
            if tensor.device.type != device_type():
                continue
            if func.overloadpacket in _EMPTY:
                self._unwritten.add(tensor, call.place, captured=captured)
            elif call.moved is not None:
                self._unwritten.write_masked(tensor, *call.moved, captured=captured)
            else:
                self._unwritten.drop(storage_address(tensor))
        if call.resized is not None:
            tensor, address, size = call.resized
            if (
                tensor.device.type == device_type()
                and tensor.layout == torch.strided
                and storage_address(tensor) != address
            ):
                self._unwritten.grow(tensor, size, call.place, captured=captured)

    def _read_error(self, call: Call, read: Read) -> UninitializedReadError:
        tensor, name, *_ = read.operand
        stream = call.streams[tensor.device]
        access = Access(
            str(call.operator),
            False,
            (name,),
            _place_words(stream, tensor.device),
            _line(call.place) or "unknown line",
        )
        return UninitializedReadError(
            access,
            storage_address(tensor) + int(tensor.storage_offset()) * tensor.itemsize,
            _line(read.allocated),
            f"{read.unwritten} of its {tensor.numel()} elements were never written, "
            f"the first at index {read.first}.",
        )

    def end(self, call: Call, func: torch._ops.OpOverload, result: Any) -> None:
        """Notes the results of an operator.

        Raises:
            UnsynchronizedAccessError: If a result is in memory that may still be in
                use.
        """
        made = [
            Operand(tensor, "output", reads=False, writes=_fills(func))
            for tensor in _strided(result)
            if storage_address(tensor) not in call.storages
        ]
        devices = {each.tensor.device for each in made}
        with self.lock:
            self.end_lives()
            self._launch(call, {d for d in devices if d.type == device_type()})
            if self._unwritten is not None:
                self._note_unwritten_results(call, func, made)
            try:
                self._use(call, made, called=True)
            finally:
                self._join_copies(call)
                if call.waits:
                    for stream in call.streams.values() - call.captures.keys():
                        self.order.all_streams_wait_for_stream(stream)
                    changed = self._host_reads.take_changed(self._is_over)
                    self._note_host_writes(changed, call.place)
        if call.waits:
            self.raise_host_write()

    def launch_kernel(
        self,
        name: str,
        device: int,
        operands: list[tuple[torch.Tensor, bool]],
        place: Place | None,
    ) -> None:
        """Notes a compiled kernel that is about to be launched.

        Args:
            name: Its name.
            device: The index of its device.
            operands: Its tensors, and whether it may write to each.
            place: The program line.

        Raises:
            UnsynchronizedAccessError: If an operand may still be in use elsewhere.
        """
        self.raise_host_write()
        with self.lock:
            self.end_lives()
            self._calls += 1
            call = Call(
                name, self._calls, place, set(), {}, {}, copies=False, waits=False
            )
            self._launch(call, {torch.device(device_type(), device)})
            used = [
                Operand(tensor, f"argument {i}", reads=not writes, writes=writes)
                for i, (tensor, writes) in enumerate(operands)
            ]
            self._use(call, used, called=False)
            if self._unwritten:
                read = self._unwritten.launch(used, bool(call.captures))
                if read is not None:
                    raise self._read_error(call, read)

    def _launch(self, call: Call, devices: set[torch.device]) -> None:
        for device in devices - call.streams.keys():
            stream = call.streams[device] = _current_stream(device)
            capture = self._capture_of(stream)
            if capture is not None:
                call.captures[stream] = capture
            order = self._order_of(call, stream)
            order.launch(stream, device.index, call.number)

    def _order_of(self, call: Call, stream: int) -> Order:
        capture = call.captures.get(stream)
        return self.order if capture is None else capture.order

    def _join_copies(self, call: Call) -> None:
        """Orders the streams of a copy between two devices."""
        if call.copies and len(call.streams) > 1:
            streams = [*call.streams.values()]
            order, *others = {self._order_of(call, stream) for stream in streams}
            if not others:  # else the copy is refused
                order.wait_for_each_other(streams)

    def _use(self, call: Call, operands: list[Operand], *, called: bool) -> None:
        uses: dict[Region, _Planned] = {}
        if self._host_memory:
            self._host_memory.prune(self._is_past)
        for tensor, name, reads, writes in operands:
            region = region_of(tensor)
            if region is None or not (reads or writes):
                continue
            if region in uses:
                use = uses[region].use
                use.writes = use.writes or writes
                use.arguments.append(name)
                continue
            stream, kept = self._user(call, tensor)
            capture = call.captures.get(stream)
            if capture is not None:
                memory = capture.memory
            elif tensor.device.type == device_type():
                memory = self._device_memory
            else:
                memory = self._host_memory
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
                operator=call.operator,
                arguments=[name],
                place=call.place,
            )
            uses[region] = _Planned(use, memory, capture, kept)
        conflict = None
        for use, memory, capture, _ in uses.values():
            order = self.order if capture is None else capture.order
            conflict = conflict or self._find(memory, use, order)
            if capture is not None:
                capture.conflict = capture.conflict or conflict
        if called or conflict is None:  # else the operator is not called
            for use, memory, capture, kept in uses.values():
                if kept and memory is self._host_memory:
                    self._watch_host_memory(use)
                if kept:
                    memory.add(use)
                if kept and capture is not None:
                    capture.note(use)
        if conflict is not None:
            # Raised without a local variable: the traceback would keep the frame, which
            # would keep the error and the program's tensors.
            raise _error(*conflict)

    def _user(self, call: Call, tensor: torch.Tensor) -> tuple[int, bool]:
        """Returns the use of a tensor, and whether it must be kept."""
        if tensor.device.type == device_type():
            return call.streams[tensor.device], True
        if not call.copies:
            return HOST, False
        (stream,) = call.streams.values()
        behind = not call.waits and tensor.is_pinned()
        return stream if call.waits or behind else HOST, behind

    def _find(self, memory: Memory, use: Use, order: Order) -> tuple[Use, Use] | None:
        for previous in memory.uses(use.region, writes=use.writes):
            if _conflict(use, previous, order):
                return use, previous
        return None


class _Planned(NamedTuple):
    use: Use
    memory: Memory
    capture: Capture | None
    kept: bool


def _conflict(use: Use, previous: Use, order: Order) -> bool:
    if previous.stream in (use.stream, HOST) or order.is_ordered_after(
        use.stream, previous.number, previous.stream
    ):
        return False
    life = previous.life
    if life is not use.life:
        if life.segment != use.life.segment:
            return False  # the device reused it in between
        over = life.waited_for.get(previous.stream, -1)
        if life.waited_in is order and previous.number <= over:
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
    """Returns the GPU trace's handle of a stream."""
    handle: int = stream.native_handle  # type: ignore[attr-defined]
    return handle


# ---- what an operator does, by its schema


def _arguments(
    func: torch._ops.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[Operand]:
    for argument, value in zip_arguments(func._schema, args, kwargs):
        alias = argument.alias_info
        writes = alias is not None and alias.is_write
        reads = alias is None and func.overloadpacket not in _LIKE
        if argument.name == OUTPUTS.get(func._schema.name):
            reads, writes = False, True
        for tensor in _strided(value):
            yield Operand(tensor, argument.name, reads, writes)


def _target(func: torch._ops.OpOverload, kwargs: dict[str, Any]) -> set[torch.device]:
    """Returns the target device of a copy."""
    device = kwargs.get("device")
    if device is None or func._schema.name not in COPIES:
        return set()
    device = torch.device(device)
    if device.type == device_type() and device.index is None:
        device = torch.device(device.type, _C.current_device())
    return {device}


@cache
def _has_kernel(func: torch._ops.OpOverload) -> bool:
    """Returns whether an operator uses more than the metadata of its arguments."""
    if func.overloadpacket in _NO_KERNEL or torch.Tag.inplace_view in func.tags:
        return False
    schema = func._schema
    return (
        any(each.alias_info and each.alias_info.is_write for each in schema.arguments)
        or any("Tensor" in str(each.type) for each in schema.returns)
        or torch.Tag.data_dependent_output in func.tags
        or schema.name in UNTAGGED
        or func.namespace == "c10d"
    )


@cache
def _fills(func: torch._ops.OpOverload) -> bool:
    """Returns whether an operator writes to its new tensors."""
    return func.overloadpacket not in _EMPTY and _has_kernel(func)


# ---- tensors


def _strided(value: object) -> Iterator[torch.Tensor]:
    """Yields the strided tensors in nested values."""
    if not isinstance(value, (torch.Tensor, list, tuple, dict)):
        return  # the usual case; looking for leaves takes time
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
    # Replays still use memory that was freed and reused in the pool of a graph.
    replayed = use.by_replay or previous.by_replay
    shared = replayed and use.life.capture is not None
    if previous.life is use.life or shared:
        advice = (
            "Make the host wait first: synchronize the stream, its device or an event."
            if use.stream == HOST
            else "Make one stream wait for the other, with wait_stream() or an event."
        )
        return UnsynchronizedAccessError(current, earlier, address, allocated, advice)
    advice = (
        "Make the stream wait for the stream on which the memory was allocated."
        if previous.stream == previous.life.stream
        else "Call record_stream() before the tensor is freed: it keeps the memory "
        "until the other stream has used it."
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


def _host_write_error(read: Use, place: Place | None) -> UnsynchronizedAccessError:
    write = Access(
        "a write without an operator: by NumPy, or through a pointer",
        True,
        ("the memory",),
        "the host",
        f"before {place or 'an unknown line'}",
    )
    return UnsynchronizedAccessError(
        write,
        _access(read),
        read.region.start,
        _line(read.life.allocated),
        "Make the host wait first: synchronize the stream, its device or an event.",
    )


def _freed_error(use: Use) -> UseAfterFreeError:
    captured = replace(use, place=use.captured, captured=None, by_replay=False)
    return UseAfterFreeError(
        _access(use),
        _access(captured)._replace(where="a captured stream"),
        use.region.start,
        None,
        "A graph keeps addresses, not tensors: keep the tensor alive as long as the "
        "graph is replayed.",
        freed=_line(use.life.freed),
        previously_allocated=_line(use.life.allocated),
    )


def _replayed_read_error(
    use: Use, size: int, allocated: Place | None
) -> UninitializedReadError:
    return UninitializedReadError(
        _access(use),
        use.region.start,
        _line(allocated),
        f"All {size} bytes were never written.",
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
        (_line(use.captured) or "unknown line") if use.by_replay else None,
    )


def _words(use: Use) -> str:
    """Describes a use of memory."""
    return "the host" if use.device is None else _place_words(use.stream, use.device)


def _place_words(stream: int, device: torch.device) -> str:
    if stream == _handle(default_stream(device)):
        return f"the default stream of {device}"
    return f"stream {stream} of {device}"
