# SPDX-License-Identifier: BSD-3-Clause
"""What the devices did, when and for whom: records of calls and commands.

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
        kind: What it is about. The first five of ``KINDS`` are commands of streams.
        name: Of the kernel, or of the C function.
        device: The index of the device; None if there is none.
        stream: The number of the stream, ``Stream.number``; None if there is none.
        enqueued: When it was asked for.
        started: When it began to run; of what was dropped, when that was.
        ended: When it had run.
        bytes: That it copied, set, allocated, or read and wrote; 0 if unknown.
        direction: Of a copy: ``"HtoD"``, ``"DtoH"``, ``"DtoD"`` or ``"HtoH"``.
        memory: Of a copy: whether the host's memory is ``"pageable"`` or
            ``"pinned"``; ``"device"`` if the host has no part in it.
        error: The name of the code that it failed with, or None.
        correlation: The number of the C call that caused it.
        external_id: The id that ``tag`` gave it, or 0.
        user_id: The same of ``tag(user=True)``.
        process: The process that called.
        thread: The thread that called, as ``threading.get_native_id()``.
        address: Of a block of memory; else 0.
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
    """What is recorded from ``record()`` on.

    Attributes:
        dropped: How many records found no room before the last ``take()``.
    """

    def __init__(self) -> None:
        """Makes a recording without records."""
        self.dropped = 0

    def take(self) -> list[Activity]:
        """Takes the records of what has ended, in the order of their starts.

        A command that was enqueued while activity was recorded leaves its record when
        it has run, also after the end of the context.
        """
        rows, dropped = _C.take_activity()
        self.dropped += dropped
        records = [Activity._make(row) for row in rows]
        return sorted(records, key=lambda each: (each.started, each.ended))


@contextmanager
def record(kinds: Sequence[Kind] = KINDS, *, capacity: int = 0) -> Iterator[Recording]:
    """Records the activity of the whole process.

    Args:
        kinds: What to record.
        capacity: How many records of each thread are kept until they are taken; 0 is
            1048576. More are counted and dropped.

    Yields:
        The recording, to take the records from.

    Raises:
        ValueError: If a kind is not known, none is given, or the capacity is negative.
        OpenRegError: If activity is recorded already, by ``torch.profiler`` perhaps.
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
    """Gives what this thread calls inside the context a number.

    Args:
        number: From 1 to 2**64 - 1.
        user: Whether it is the ``user_id`` of the records, not the ``external_id``.
    """
    _C.push_activity_id(number, user)
    try:
        yield
    finally:
        _C.pop_activity_id(user)
