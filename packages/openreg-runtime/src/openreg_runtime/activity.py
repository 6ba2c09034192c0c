# SPDX-License-Identifier: BSD-3-Clause
"""Activity records: the calls and commands that ran on the devices, and when.

    with activity.record() as recording:
        stream.launch(kernel)
        stream.synchronize()
    for each in recording.take():
        print(each.name, each.ended - each.started)

``torch.profiler`` shows the same records, with the operators that caused them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, NamedTuple

from . import _C

__all__ = ["KINDS", "Activity", "Recording", "record", "tag"]

Kind = Literal[
    "kernel", "memcpy", "memset", "host_function", "wait", "malloc", "free", "call"
]
KINDS: tuple[Kind, ...] = (
    "kernel",
    "memcpy",
    "memset",
    "host_function",
    "wait",
    "malloc",
    "free",
    "call",
)


class Activity(NamedTuple):
    """One record. Times are nanoseconds of ``time.monotonic_ns()``.

    Attributes:
        kind: The kind. The first five of ``KINDS`` are commands of streams.
        name: The kernel's or the C function's name.
        device: The index of the device; None if there is none.
        stream: The number of the stream, ``Stream.number``; None if there is none.
        enqueued: The time of the call.
        started: The time at which it began to run, or was dropped.
        ended: The time at which it ended.
        bytes: The number of bytes copied, set, allocated, or read and written; 0 if
            unknown.
        direction: For a copy, ``"HtoD"``, ``"DtoH"``, ``"DtoD"`` or ``"HtoH"``.
        memory: For a copy, the kind of host memory, ``"pageable"`` or ``"pinned"``;
            ``"device"`` for a copy between devices.
        error: The name of its error code, or None.
        correlation: The number of the C call that caused it.
        external_id: The id that ``tag`` gave it, or 0.
        user_id: The id from ``tag(user=True)``, or 0.
        process: The process of the call.
        thread: The thread of the call, as ``threading.get_native_id()``.
        address: The address of a memory block; else 0.
        nested: Whether it is a part of another command of its stream.
    """

    kind: Kind
    name: str
    device: int | None
    stream: int | None
    enqueued: int
    started: int
    ended: int
    bytes: int
    direction: str | None
    memory: str | None
    error: str | None
    correlation: int
    external_id: int
    user_id: int
    process: int
    thread: int
    address: int
    nested: bool


class Recording:
    """The records of ``record()``.

    Attributes:
        dropped: The number of records that found no room before the last ``take()``.
    """

    def __init__(self) -> None:
        """Creates a recording without records."""
        self.dropped = 0

    def take(self) -> list[Activity]:
        """Takes the records of finished calls and commands, ordered by start.

        A command enqueued in the context leaves its record when it has run, also after
        the end of the context.
        """
        rows, dropped = _C.take_activity()
        self.dropped += dropped
        records = [Activity._make(row) for row in rows]
        return sorted(records, key=lambda each: (each.started, each.ended))


@contextmanager
def record(kinds: Sequence[Kind] = KINDS, *, capacity: int = 0) -> Iterator[Recording]:
    """Records the activity of the whole process.

    Args:
        kinds: The kinds to record.
        capacity: The number of records that each thread keeps until they are taken; 0
            means 1048576. Further records are counted and dropped.

    Yields:
        The recording, to take the records from.

    Raises:
        ValueError: If a kind is unknown, no kind is given, or the capacity is negative.
        OpenRegError: If recording is already enabled, for example by
            ``torch.profiler``.
    """
    if not kinds:
        raise ValueError("record: kinds is empty, expected at least one kind")
    _C.enable_activity(list(kinds), capacity)
    try:
        yield Recording()
    finally:
        _C.disable_activity()


@contextmanager
def tag(number: int, *, user: bool = False) -> Iterator[None]:
    """Attaches a number to this thread's calls inside the context.

    Args:
        number: From 1 to 2**64 - 1.
        user: Whether it is the ``user_id`` of the records, not the ``external_id``.
    """
    _C.push_activity_id(number, user)
    try:
        yield
    finally:
        _C.pop_activity_id(user)
