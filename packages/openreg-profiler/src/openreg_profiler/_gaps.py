# SPDX-License-Identifier: BSD-3-Clause
"""The gaps in which devices were idle, and their causes."""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice, takewhile
from typing import Literal, NamedTuple

from openreg_profiler._timeline import Call, Timeline, Work

Cause = Literal[
    "host", "synchronize", "copy", "event", "collective", "latency", "start"
]

_SYNCHRONIZE = ("orStreamSynchronize", "orDeviceSynchronize", "orEventSynchronize")
# A shorter wait did not have to wait.
_WAITED = 5_000


class Gap(NamedTuple):
    """A time in which a device was idle. Times are nanoseconds of the profile."""

    device: int
    start: int
    end: int
    cause: Cause
    line: str | None


class _Host:
    """The calls of the host, searchable by time."""

    def __init__(self, timeline: Timeline) -> None:
        self.by_correlation = {call.correlation: call for call in timeline.calls}
        by_end = sorted(timeline.calls, key=lambda call: call.end)
        self._waits = [
            call
            for call in by_end
            if call.name in _SYNCHRONIZE and call.end - call.start > _WAITED
        ]
        self._event_waits = [
            call.end for call in by_end if call.name == "orStreamWaitEvent"
        ]

    def waited(self, start: int, end: int, launch: Call | None) -> Call | None:
        """Returns the wait before ``start`` that ended by ``end``, of one thread."""
        first = bisect.bisect_left(self._waits, start, key=lambda call: call.end)
        for wait in takewhile(
            lambda call: call.end <= end, islice(self._waits, first, None)
        ):
            if wait.start < start and (launch is None or wait.thread == launch.thread):
                return wait
        return None

    def enqueued_event_wait(self, start: int, end: int) -> bool:
        index = bisect.bisect_left(self._event_waits, start)
        return index < len(self._event_waits) and self._event_waits[index] <= end


def blocks(work: Work) -> bool:
    """Returns whether the host waits for a copy."""
    return work.kind == "memcpy" and "Pageable" in work.name


def cause_of_copy(timeline: Timeline, copy: Work) -> Cause:
    """Returns the cause of a blocking copy.

    Reading one element is a copy, too, if the host cannot access device memory.
    """
    is_read = timeline.operators.get(copy.operator) == "aten::_local_scalar_dense"
    return "synchronize" if is_read else "copy"


def _cause_of_host(
    timeline: Timeline, host: _Host, start: int, end: int, before: Work
) -> tuple[Cause, int]:
    """Returns why the host had not launched anything, and a moment at that time."""
    if blocks(before):
        copy = host.by_correlation.get(before.correlation)
        return cause_of_copy(timeline, before), copy.start if copy else before.start
    return "host", (start + end) // 2


def _split(
    timeline: Timeline,
    host: _Host,
    idle: tuple[int, int],
    before: Work | None,
    after: Work,
) -> Iterator[Gap]:
    """Splits a gap into the time until the launch and the time until the work began."""
    start, end = idle
    if before is None:
        yield Gap(after.device, start, end, "start", timeline.line_at(after.enqueued))
        return
    launched = min(max(start, after.enqueued), end)
    cause: Cause
    if start < launched:
        launch = host.by_correlation.get(after.correlation)
        wait = host.waited(start, launched, launch)
        if wait is not None:
            cause, moment = "synchronize", (wait.start + wait.end) // 2
        else:
            cause, moment = _cause_of_host(timeline, host, start, launched, before)
        yield Gap(after.device, start, launched, cause, timeline.line_at(moment))
    if launched < end:
        # The work was enqueued. Another stream delayed it, or it was launch latency.
        waits = host.enqueued_event_wait(before.enqueued, after.enqueued)
        cause = "event" if waits else "latency"
        line = timeline.line_at(after.enqueued)
        yield Gap(after.device, launched, end, cause, line)


def find(timeline: Timeline) -> list[Gap]:
    """Finds the gaps before each device's work, and their causes."""
    host = _Host(timeline)
    by_device: dict[int, list[Work]] = defaultdict(list)
    for each in timeline.work:
        by_device[each.device].append(each)
    found: list[Gap] = []
    for works in by_device.values():
        last_end, last = timeline.begin, None
        for each in works:
            if each.start > last_end:
                found += _split(timeline, host, (last_end, each.start), last, each)
            if each.end > last_end:
                last_end, last = each.end, each
    return sorted(found, key=lambda gap: gap.start)
