# SPDX-License-Identifier: BSD-3-Clause
"""A profile as intervals: what the device did, what the host called, and from where."""

from __future__ import annotations

import bisect
import json
import tempfile
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch

_WORK = {"kernel": "kernel", "gpu_memcpy": "memcpy", "gpu_memset": "memset"}
# PyTorch names files without the folders that Python imports from.
_LIBRARIES = (
    Path(torch.__file__).parents[1],
    Path(__file__).parents[1],
    Path(bisect.__file__).parent,
)


class Work(NamedTuple):
    """Something that the device did. Times are nanoseconds of ``time.time_ns()``."""

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
    """A call that a line of the program made."""

    start: int
    end: int
    line: str


class Timeline(NamedTuple):
    """What a profile has, by time.

    Attributes:
        work: What the devices did.
        calls: What the host called.
        operators: The names of operators, by their numbers.
        steps: The names of the steps of a schedule.
        sites: Calls by lines of the program, empty without ``with_stack=True``.
        begin: The first moment of the profile.
        end: The last one.
    """

    work: list[Work]
    calls: list[Call]
    operators: dict[int, str]
    steps: list[str]
    sites: list[Site]
    begin: int
    end: int

    def line_at(self, moment: int) -> str | None:
        """Names the line of the program that the host was at, ``"train.py:12"``."""
        last = bisect.bisect_right(self.sites, moment, key=lambda site: site.start)
        # Of calls in calls the one that began last is the innermost.
        for site in reversed(self.sites[:last]):
            if site.end >= moment:
                return site.line
        return None


@cache
def _is_of_the_program(file: str) -> bool:
    """Whether a file is neither Python's own nor of an installed package."""
    if file.startswith("<"):
        return False
    if Path(file).is_absolute():
        return not any(Path(file).is_relative_to(folder) for folder in _LIBRARIES)
    return not any((folder / file).is_file() for folder in _LIBRARIES)


def _sites(nodes: Iterable[Any]) -> Iterator[Site]:
    """Yields each call from a line of the program, with what it was busy with."""
    stack = list(nodes)
    while stack:
        node = stack.pop()
        stack += node.children
        caller = getattr(node.extra_fields, "caller", None)
        if caller is None:
            continue
        try:
            file = caller.file_name
        except UnicodeDecodeError:  # PyTorch kept no copy, and the code is gone
            continue
        if _is_of_the_program(file):
            line = f"{Path(file).name}:{caller.line_number}"
            start = node.start_time_ns
            yield Site(start, start + node.duration_time_ns, line)


def read(profile: torch.profiler.profile) -> Timeline:
    """Reads a profile that has ended.

    Raises:
        ValueError: If it has no work of the device.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        profile.export_chrome_trace(str(path))
        # Names of code that is gone by now may be any bytes.
        text = path.read_text(encoding="utf-8", errors="replace")
        trace = json.loads(text, strict=False)
    base = int(trace.get("baseTimeNanoseconds", 0))

    def interval(event: dict[str, Any]) -> tuple[int, int]:
        start = base + round(event["ts"] * 1000)
        return start, start + round(event.get("dur", 0) * 1000)

    work, calls, steps = [], [], []
    operators = {}
    moments: list[int] = []
    for event in trace["traceEvents"]:
        if event.get("ph") != "X" or event.get("cat") == "Trace":
            continue
        start, end = interval(event)
        kind, arguments = event.get("cat"), event.get("args", {})
        if kind in _WORK:
            queued = round(arguments["queued (us)"] * 1000)
            work.append(
                Work(
                    _WORK[kind],
                    event["name"],
                    event["pid"],
                    event["tid"],
                    start,
                    end,
                    start - queued,
                    arguments.get("bytes", 0),
                    arguments["correlation"],
                    arguments.get("External id", 0),
                )
            )
        elif kind == "privateuse1_runtime":
            correlation = arguments["correlation"]
            calls.append(Call(event["name"], event["tid"], start, end, correlation))
        elif kind == "cpu_op":
            operators[arguments["External id"]] = event["name"]
        elif kind == "user_annotation" and event["name"].startswith("ProfilerStep#"):
            steps.append(event["name"])
        else:
            continue
        moments += (start, end)
    if not work:
        raise ValueError(
            "utilization: the profile has no work of the device: expected one that has "
            "ended, with ProfilerActivity.OPENREG among its activities"
        )
    results = profile.profiler.kineto_results if profile.profiler else None
    sites = sorted(_sites(results.experimental_event_tree())) if results else []
    return Timeline(
        sorted(work, key=lambda each: each.start),
        sorted(calls, key=lambda each: each.start),
        operators,
        steps,
        sites,
        min(moments),
        max(moments),
    )
