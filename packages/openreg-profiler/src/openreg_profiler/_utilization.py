# SPDX-License-Identifier: BSD-3-Clause
"""The utilization of the devices in a profile, and the changes that save most."""

from __future__ import annotations

import bisect
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import islice, takewhile
from typing import Any, NamedTuple

import torch

from openreg_aten._C import device_type
from openreg_profiler import _gaps, _machine, _timeline
from openreg_profiler._gaps import Cause, Gap
from openreg_profiler._machine import Machine
from openreg_profiler._timeline import Timeline, Work

_NS = 1e-9  # of a second
_MOST_CHANGES = 10
_COLLECTIVE = "occl:"
_ATTENTION = "aten::_scaled_dot_product_flash_attention_for_cpu"
ADVICE: dict[Cause, str] = {
    "host": "the host is too slow: launch more in less Python, or compile",
    "synchronize": "the host waits for the device: read values later, or less often",
    "copy": "the copy blocks the host: pin the memory, copy with non_blocking=True",
    "event": "the stream waits for another stream: record the event earlier",
    "latency": "the stream began late: launch more work before it is idle",
    "collective": "no kernel overlaps it: run the collective together with kernels",
}


class Busy(NamedTuple):
    """The busy time of a stream, or of a device if ``stream`` is None."""

    device: int
    stream: int | None
    seconds: float
    share: float  # of the profile's time


class Operator(NamedTuple):
    """The rates of an operator's kernels.

    Attributes:
        name: The name of the operator, or of a kernel without operator.
        launches: The number of its kernels, copies and fills.
        seconds: Their total time.
        flops: Floating-point operations per second; None without ``with_flops=True``,
            or for an operator that PyTorch does not count.
        bandwidth: Bytes per second; None if the bytes are unknown.
        share: The larger of the two rates as a share of the machine's peak rate.
    """

    name: str
    launches: int
    seconds: float
    flops: float | None
    bandwidth: float | None
    share: float | None


class Change(NamedTuple):
    """A change of the program, and the seconds that it could save."""

    cause: Cause
    line: str | None
    seconds: float
    times: int

    @property
    def advice(self) -> str:
        """The advice for the cause."""
        return ADVICE[self.cause]


class Utilization(NamedTuple):
    """The utilization of the devices.

    Attributes:
        seconds: The time from the first to the last event of the profile.
        busy: The busy time of each device and stream.
        gaps: The idle times of devices, in order.
        operators: The rates of operators; the slowest come first.
        machine: The machine's peak rates, measured on the CPU.
        memory: Bytes by PyTorch's memory category at the peak; empty without
            ``profile_memory``, ``record_shapes`` and ``with_stack``.
        steps: The number of the schedule's steps.
        launches: The number of kernels, copies and fills.
        changes: At most ten changes; the largest saving comes first.
        work: All work of the devices, for plots.
    """

    seconds: float
    busy: list[Busy]
    gaps: list[Gap]
    operators: list[Operator]
    machine: Machine
    memory: dict[str, int]
    steps: int
    launches: int
    changes: list[Change]
    work: list[Work]

    @property
    def launches_per_step(self) -> float | None:
        """Launches per step; None without a schedule."""
        return self.launches / self.steps if self.steps else None

    def to_dict(self) -> dict[str, Any]:
        """Returns all fields except ``work`` for ``json``."""
        return {
            "seconds": self.seconds,
            "busy": [row._asdict() for row in self.busy],
            "gaps": [row._asdict() for row in self.gaps],
            "operators": [row._asdict() for row in self.operators],
            "machine": self.machine._asdict(),
            "memory": self.memory,
            "steps": self.steps,
            "launches": self.launches,
            "launches_per_step": self.launches_per_step,
            "changes": [
                {**row._asdict(), "advice": row.advice} for row in self.changes
            ],
        }

    def table(self) -> str:
        """Returns the report for a terminal."""
        from openreg_profiler import _report

        return _report.table(self)

    def html(self) -> str:
        """Returns the report as a self-contained page with plots."""
        from openreg_profiler import _report

        return _report.page(self)


def _union(intervals: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Joins intervals that overlap or touch."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(intervals):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def _total(intervals: Iterable[tuple[int, int]]) -> int:
    return sum(end - start for start, end in intervals)


def _busy(timeline: Timeline) -> list[Busy]:
    places: dict[tuple[int, int | None], list[tuple[int, int]]] = defaultdict(list)
    for each in timeline.work:
        places[each.device, None].append((each.start, each.end))
        places[each.device, each.stream].append((each.start, each.end))
    whole = max(timeline.end - timeline.begin, 1)
    rows = []
    order = sorted(places, key=lambda p: (p[0], -1 if p[1] is None else p[1]))
    for device, stream in order:
        taken = _total(_union(places[device, stream]))
        rows.append(Busy(device, stream, taken * _NS, taken / whole))
    return rows


def _exposed(work: Work, others: list[tuple[int, int]]) -> int:
    """Returns the time in which no other work ran; ``others`` is sorted."""
    first = bisect.bisect_right(others, work.start, key=lambda other: other[1])
    overlapping = takewhile(
        lambda other: other[0] < work.end, islice(others, first, None)
    )
    return (work.end - work.start) - _total(
        (max(start, work.start), min(end, work.end)) for start, end in overlapping
    )


def _changes(timeline: Timeline, gaps: list[Gap]) -> list[Change]:
    saved: Counter[tuple[Cause, str | None]] = Counter()
    count: Counter[tuple[Cause, str | None]] = Counter()

    def add(cause: Cause, line: str | None, nanoseconds: int) -> None:
        if nanoseconds > 0:
            saved[cause, line] += nanoseconds
            count[cause, line] += 1

    for gap in gaps:
        if gap.cause != "start":
            add(gap.cause, gap.line, gap.end - gap.start)
    calls = {call.correlation: call for call in timeline.calls}
    compute: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for each in timeline.work:
        if each.kind == "kernel" and not each.name.startswith(_COLLECTIVE):
            compute[each.device].append((each.start, each.end))
    kernels = {device: _union(intervals) for device, intervals in compute.items()}
    for each in timeline.work:
        cause: Cause
        if each.name.startswith(_COLLECTIVE):
            cause = "collective"
        elif _gaps.blocks(each):
            cause = _gaps.cause_of_copy(timeline, each)
        else:
            continue
        call = calls.get(each.correlation)
        line = timeline.line_at(call.start if call else each.enqueued)
        add(cause, line, _exposed(each, kernels.get(each.device, [])))
    return [
        Change(cause, line, nanoseconds * _NS, count[cause, line])
        for (cause, line), nanoseconds in saved.most_common(_MOST_CHANGES)
    ]


def _attention_flops(event: Any) -> int:
    """Counts the operations of attention, which PyTorch's profiler does not count.

    Args:
        event: An event of the profiler; without shapes the count is 0.
    """
    # The names of other events may be freed, as with Python functions.
    if event.activity_type() != "cpu_op" or not event.name().startswith(_ATTENTION):
        return 0
    from torch.utils.flop_counter import sdpa_backward_flop_count, sdpa_flop_count

    is_backward = event.name() == f"{_ATTENTION}_backward"
    count, tensors = (
        (sdpa_backward_flop_count, 4) if is_backward else (sdpa_flop_count, 3)
    )
    shapes = event.shapes()[:tensors]
    return int(count(*shapes)) if len(shapes) == tensors else 0


def _operators(
    timeline: Timeline, profile: torch.profiler.profile, machine: Machine
) -> list[Operator]:
    # profile.events() would read all names, even of freed code.
    results = profile.profiler.kineto_results if profile.profiler else None
    flops = {
        event.correlation_id(): count
        for event in (results.events() if results else ())
        if (count := event.flops() or _attention_flops(event)) > 0
    }
    groups: dict[str, list[Work]] = defaultdict(list)
    for each in timeline.work:
        groups[timeline.operators.get(each.operator, each.name)].append(each)
    rows = []
    for name, works in groups.items():
        seconds = max(_total((w.start, w.end) for w in works), 1) * _NS
        done = sum(flops.get(number, 0) for number in {w.operator for w in works})
        moved = sum(each.bytes for each in works)
        rates = (
            done / seconds if done else None,
            moved / seconds if moved else None,
        )
        limits = (machine.flops, machine.bandwidth)
        shares = [
            rate / limit for rate, limit in zip(rates, limits, strict=True) if rate
        ]
        rows.append(
            Operator(name, len(works), seconds, *rates, max(shares, default=None))
        )
    return sorted(rows, key=lambda row: -row.seconds)


def _memory(profile: torch.profiler.profile) -> dict[str, int]:
    if not (profile.profile_memory and profile.record_shapes and profile.with_stack):
        return {}
    from torch.profiler._memory_profiler import (
        _CATEGORY_TO_INDEX,
        MemoryProfileTimeline,
    )

    timeline = MemoryProfileTimeline(profile._memory_profile())
    owners = {
        index: category.name.lower() if category else "unknown"
        for category, index in _CATEGORY_TO_INDEX.items()
    }
    highest: list[int] = []
    for device in range(torch.accelerator.device_count()):
        _, sizes = timeline._coalesce_timeline(  # type: ignore[no-untyped-call]
            f"{device_type()}:{device}"
        )
        highest = max([highest, *sizes], key=sum)
    # The first number is the total.
    return {owners[index]: size for index, size in enumerate(highest[1:]) if size > 0}


def utilization(profile: torch.profiler.profile) -> Utilization:
    """Reports how well a profile used the devices, and the changes that save most.

    Program lines need a profile with ``with_stack=True``, achieved operations per
    second ``with_flops=True``. The rate of attention also needs ``record_shapes=True``.

    Args:
        profile: A ``torch.profiler.profile`` that has ended, with
            ``ProfilerActivity.OPENREG`` among its activities.

    Returns:
        The report, with ``table()``, ``html()`` and ``to_dict()``.

    Raises:
        ValueError: If the profile does not contain device work, or is not one of the
            last eight of the process.
    """
    timeline = _timeline.read(profile)
    machine = _machine.measure()
    gaps = _gaps.find(timeline)
    return Utilization(
        (timeline.end - timeline.begin) * _NS,
        _busy(timeline),
        gaps,
        _operators(timeline, profile, machine),
        machine,
        _memory(profile),
        len(timeline.steps),
        len(timeline.work),
        _changes(timeline, gaps),
        timeline.work,
    )
