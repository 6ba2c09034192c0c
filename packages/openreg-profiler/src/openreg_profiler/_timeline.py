# SPDX-License-Identifier: BSD-3-Clause
"""A profile as intervals: device work, host calls, and program lines."""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch

from openreg_profiler import _C

_WORK = {"kernel": "kernel", "gpu_memcpy": "memcpy", "gpu_memset": "memset"}
_CALLS = ("cuda_runtime", "privateuse1_runtime")
# PyTorch's file names are relative to the folders from which Python imports.
_LIBRARIES = (
    Path(torch.__file__).parents[1],
    Path(__file__).parents[1],
    Path(bisect.__file__).parent,
)


class Work(NamedTuple):
    """Work of the device. Times are nanoseconds of ``time.time_ns()``."""

    kind: str
    name: str
    device: int
    stream: int
    start: int
    end: int
    enqueued: int
    bytes: int
    correlation: int
    operator: int  # its number; 0 if there is none


class Call(NamedTuple):
    """A call of the C API by the host."""

    name: str
    thread: int
    start: int
    end: int
    correlation: int


class Site(NamedTuple):
    """A call from a program line."""

    start: int
    end: int
    line: str


class Lines(NamedTuple):
    """The program line of the host from each moment on, or None."""

    moments: list[int]
    lines: list[str | None]


class Timeline(NamedTuple):
    """The contents of a profile, ordered by time.

    Attributes:
        work: The work of the devices.
        calls: The calls of the host.
        operators: The names of operators, by number.
        steps: The names of the schedule's steps.
        lines: The program lines of the host, empty without ``with_stack=True``.
        begin: The first moment of the profile.
        end: The last one.
    """

    work: list[Work]
    calls: list[Call]
    operators: dict[int, str]
    steps: list[str]
    lines: Lines
    begin: int
    end: int

    def line_at(self, moment: int) -> str | None:
        """Returns the program line of the host at a moment, ``"train.py:12"``."""
        index = bisect.bisect_right(self.lines.moments, moment) - 1
        return self.lines.lines[index] if index >= 0 else None


@cache
def _is_of_the_program(file: str) -> bool:
    """Returns whether a file belongs to the program, not to Python or a package."""
    if file.startswith("<"):
        return False
    if Path(file).is_absolute():
        return not any(Path(file).is_relative_to(folder) for folder in _LIBRARIES)
    return not any((folder / file).is_file() for folder in _LIBRARIES)


def _sites(nodes: Iterable[Any]) -> Iterator[Site]:
    """Yields the calls from program lines."""
    stack = list(nodes)
    while stack:
        node = stack.pop()
        stack += node.children
        caller = getattr(node.extra_fields, "caller", None)
        if caller is None:
            continue
        try:
            file = caller.file_name
        except UnicodeDecodeError:  # PyTorch has not copied it, and the code was freed
            continue
        if _is_of_the_program(file):
            line = f"{Path(file).name}:{caller.line_number}"
            start = node.start_time_ns
            yield Site(start, start + node.duration_time_ns, line)


def _lines(sites: Iterable[Site]) -> Lines:
    """Finds the innermost call at each moment, which is the call that began last."""
    to_come = sorted(sites, reverse=True)  # the next one is last
    bounds = {bound for site in to_come for bound in (site.start, site.end + 1)}
    begun: list[tuple[int, int, str]] = []  # a heap; some have ended
    moments = sorted(bounds)
    lines: list[str | None] = []
    for moment in moments:
        while to_come and to_come[-1].start <= moment:
            site = to_come.pop()
            heapq.heappush(begun, (-site.start, site.end, site.line))
        while begun and begun[0][1] < moment:
            heapq.heappop(begun)
        lines.append(begun[0][2] if begun else None)
    return Lines(moments, lines)


def read(profile: torch.profiler.profile) -> Timeline:
    """Reads a profile that has ended.

    Raises:
        ValueError: If it does not contain device work, or is not one of the last eight
            of the process.
    """
    results = profile.profiler.kineto_results if profile.profiler else None
    details = _C.details()
    work, calls, steps = [], [], []
    operators = {}
    moments: list[int] = []
    for event in results.events() if results else ():
        start, end = event.start_ns(), event.end_ns()
        kind = event.activity_type()
        if kind in _WORK:
            correlation = event.correlation_id()
            enqueued, moved = details.get((correlation, start), (start, 0))
            work.append(
                Work(
                    _WORK[kind],
                    event.name(),
                    event.device_index(),
                    event.device_resource_id(),
                    start,
                    end,
                    enqueued,
                    moved,
                    correlation,
                    event.external_id(),
                )
            )
        elif kind in _CALLS:
            thread, correlation = event.device_resource_id(), event.correlation_id()
            calls.append(Call(event.name(), thread, start, end, correlation))
        elif kind == "cpu_op":
            operators[event.external_id()] = event.name()
        elif kind == "user_annotation" and event.name().startswith("ProfilerStep#"):
            steps.append(event.name())
        else:
            continue
        moments += (start, end)
    if not work:
        raise ValueError(
            "utilization: the profile has no device work: expected one that has "
            "ended, with ProfilerActivity.OPENREG among its activities"
        )
    if not any((each.correlation, each.start) in details for each in work):
        raise ValueError(
            "utilization: the profile is too old: expected one of the last eight "
            "traces of the process"
        )
    sites = _sites(results.experimental_event_tree()) if results else []
    return Timeline(
        sorted(work, key=lambda each: each.start),
        sorted(calls, key=lambda each: each.start),
        operators,
        steps,
        _lines(sites),
        min(moments),
        max(moments),
    )
