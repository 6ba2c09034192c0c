# SPDX-License-Identifier: BSD-3-Clause
"""The virtual clock: when the work of a record starts and ends on a described device.

Each host thread and each stream has its own time, and each device has engines for
kernels, for copies up and down, and for collectives. Nothing reads a clock of this
machine, so equal records give equal times.
"""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from openreg_predict._analysis.fusion import Fusion
from openreg_predict._devices.host import Host
from openreg_predict._records.record import (
    Capture,
    Event,
    Fork,
    HostOps,
    Join,
    Mark,
    Meet,
    Op,
    RecordedRun,
    Region,
    Replay,
    Sync,
    Wait,
)
from openreg_predict._works.work import Work


@dataclass(frozen=True, slots=True)
class Span:
    """Work on a device, in seconds of the virtual clock.

    Attributes:
        index: The index of the operator in the record.
        start: When the work starts.
        end: When it ends.
        launched: When the host launched it.
        engine: ``compute``, ``HtoD``, ``DtoH``, ``DtoD`` or ``link``.
        delay: The last cause of waiting: ``host``, ``stream``, ``event``, ``engine`` or
            ``rank``.
        arrived: When a collective could have started if all ranks had been there.
    """

    index: int
    work: Work
    start: float
    end: float
    launched: float
    device: int
    stream: int
    engine: str
    delay: str
    arrived: float = 0.0


@dataclass(slots=True)
class Timeline:
    """The times of a run.

    Attributes:
        spans: The work on devices.
        host: For each event of the record, the time of its thread after it.
        done: For each event, when all work launched until then has ended.
        waits: Spans of time in which a thread waited for a device: thread, start, end.
        marks: When the events that were recorded in streams were reached.
    """

    spans: list[Span]
    host: list[float]
    done: list[float]
    waits: list[tuple[int, float, float]]
    marks: dict[int, float]

    @property
    def end(self) -> float:
        """When the host and all devices have finished."""
        last = max((each.end for each in self.spans), default=0.0)
        return max(last, max(self.host, default=0.0))


class _Engine:
    """Runs one piece of work at a time, in the order in which they become ready."""

    def __init__(self) -> None:
        self.free_from = 0.0
        self.gaps: list[tuple[float, float]] = []

    def place(self, ready: float, time: float) -> float:
        """Returns the start of work that may start when it is ready."""
        if ready < self.free_from:
            for number, (begin, end) in enumerate(self.gaps):
                start = max(begin, ready)
                if start + time <= end:
                    del self.gaps[number]
                    if begin < start:
                        insort(self.gaps, (begin, start))
                    if start + time < end:
                        insort(self.gaps, (start + time, end))
                    return start
        start = max(ready, self.free_from)
        if start > self.free_from:
            self.gaps.append((self.free_from, start))
            if len(self.gaps) > 64:
                del self.gaps[0]
        self.free_from = start + time
        return start


class Arrival(NamedTuple):
    """A collective of a rank, and when the rank could start it."""

    group: str
    time: float


class Clock:
    """Runs the events of a record.

    Args:
        record: The record.
        works: The work of each operator, by its index in the record.
        seconds: The time of a work on the device.
        host: The described host.
        fusion: The kernels of compiled functions.
    """

    def __init__(
        self,
        record: RecordedRun,
        works: Mapping[int, Work],
        seconds: Callable[[Work], float],
        host: Host,
        fusion: Fusion,
    ) -> None:
        self.record = record
        self.works = works
        self.seconds = seconds
        self.costs = host
        self.fusion = fusion
        self.now: dict[int, float] = defaultdict(float)
        self.streams: dict[tuple[int, int], float] = defaultdict(float)
        self.blocked: dict[tuple[int, int], float] = defaultdict(float)
        self.engines: dict[tuple[int, str], _Engine] = defaultdict(_Engine)
        self.pending: dict[int, float] = {}  # storages of asynchronous collectives
        self.ended: dict[int, float] = {}  # threads
        self.graphs: dict[int, list[int]] = {}
        self.capturing: dict[int, int] = {}  # the graph that a thread captures
        self.replayed = {
            each.region
            for each in record.events
            if isinstance(each, Region) and each.graphs
        }
        count = len(record.events)
        self.line = Timeline([], [0.0] * count, [0.0] * count, [], {})
        self.marks = self.line.marks
        self.last_end = 0.0
        self.not_before = 0.0  # when the last rank begins the next collective

    def run(self) -> Timeline:
        """Returns the times of all events if no rank waits for another one."""
        steps = self.steps()
        try:
            next(steps)
            while True:
                steps.send(0.0)
        except StopIteration as end:
            line: Timeline = end.value
            return line

    def steps(self) -> Generator[Arrival, float, Timeline]:
        """Runs the events; at each collective receives when its last rank arrives."""
        for index in self._order():
            event = self.record.events[index]
            thread = getattr(event, "thread", 0)
            if isinstance(event, Meet):
                self.not_before = yield Arrival(event.group, self.now[thread])
            elif isinstance(event, Op) and event.group and self._is_launched(index):
                self.not_before = yield Arrival(event.group, self._arrival(index))
            _RULES.get(type(event), Clock._nothing)(self, index, event)
            self.not_before = 0.0
            self.line.host[index] = self.now[thread]
            self.line.done[index] = max(self.last_end, self.now[thread])
        return self.line

    def _order(self) -> Iterable[int]:
        """Returns the events so that the thread whose time is least comes first.

        The order of the record would depend on the load of the machine.
        """
        queues: dict[int, list[int]] = defaultdict(list)
        for index, event in enumerate(self.record.events):
            queues[getattr(event, "thread", 0)].append(index)
        if len(queues) <= 1:
            yield from range(len(self.record.events))
            return
        places = dict.fromkeys(queues, 0)
        started = {0}
        while True:
            ready = [
                (self.now[thread], thread)
                for thread in started & queues.keys()
                if places[thread] < len(queues[thread])
                and self._may_run(self.record.events[queues[thread][places[thread]]])
            ]
            if not ready:
                left = [
                    queues[t][places[t]] for t in queues if places[t] < len(queues[t])
                ]
                if not left:
                    return
                index = min(left)  # a dependency that the record does not have
                thread = getattr(self.record.events[index], "thread", 0)
                started.add(thread)
            else:
                thread = min(ready)[1]
                index = queues[thread][places[thread]]
            places[thread] += 1
            yield index
            event = self.record.events[index]
            if isinstance(event, Fork):
                started.add(event.child)
            if places[thread] == len(queues[thread]):
                self.ended[thread] = self.now[thread]

    def _may_run(self, event: Event) -> bool:
        if isinstance(event, (Wait, Sync)) and event.mark >= 0:
            return event.mark in self.marks
        if isinstance(event, Join):
            return event.child in self.ended
        return True

    # ---- events

    def _nothing(self, index: int, event: Event) -> None:
        """An allocation takes no time."""

    def _op(self, index: int, op: Op) -> None:
        graph = self.capturing.get(op.thread)
        if graph is not None:
            self.graphs[graph].append(index)
            self.now[op.thread] += self.costs.operator
            return
        kernel = self.fusion.kernels.get(index)
        work = (
            self.works[index] if kernel is None or kernel.work is None else kernel.work
        )
        if index in self.fusion.merged:
            return
        if work.kind == "view":
            if op.region < 0:
                self.now[op.thread] += self.costs.view
            return
        self.now[op.thread] += self._host_time(op)
        in_graph = self._is_replayed(op)
        end = self._launch(index, op, work, op.stream, in_graph=in_graph)
        if op.wait or (op.transfer and not op.pinned):
            self._wait(op.thread, end)

    def _is_replayed(self, op: Op) -> bool:
        return op.region >= 0 and op.region - op.region % 2 in self.replayed

    def _host_time(self, op: Op) -> float:
        if self._is_replayed(op):
            return 0.0
        return self.costs.compiled if op.region >= 0 else self.costs.operator

    def _is_launched(self, index: int) -> bool:
        """Returns whether an operator is a collective that runs now."""
        thread = getattr(self.record.events[index], "thread", 0)
        is_collective = self.works[index].kind == "collective"
        return is_collective and thread not in self.capturing

    def _arrival(self, index: int) -> float:
        """Returns when a rank could start a collective without the other ranks."""
        op = self.record.events[index]
        assert isinstance(op, Op)
        launched = self.now[op.thread] + self._host_time(op)
        in_graph = self._is_replayed(op)
        ready, _ = self._ready(op, op.stream, launched, in_graph=in_graph)
        return max(ready, self.engines[op.device, "link"].free_from)

    def _ready(
        self, op: Op, stream: int, launched: float, *, in_graph: bool
    ) -> tuple[float, str]:
        """Returns when an operator may start, and the cause for which it waits."""
        key = (op.device, stream)
        latency = self.costs.in_graph if in_graph else self.costs.launch
        ready, delay = launched + latency, "host"
        queued = self.streams[key] + (self.costs.in_graph if in_graph else 0.0)
        if queued > ready:
            ready, delay = queued, "stream"
        if self.blocked[key] > ready:
            ready, delay = self.blocked[key], "event"
        if self.pending and not op.is_async:
            for each in op.call.tensors():
                end = self.pending.get(each.storage or 0, 0.0)
                if end > ready:
                    ready, delay = end, "event"
        return ready, delay

    def _launch(
        self, index: int, op: Op, work: Work, stream: int, *, in_graph: bool
    ) -> float:
        device, launched = op.device, self.now[op.thread]
        key = (device, stream)
        time = self.seconds(work)
        ready, delay = self._ready(op, stream, launched, in_graph=in_graph)
        for each in op.call.tensors() if self.pending else ():
            self.pending.pop(each.storage or 0, None)
        engine = _engine_of(op, work)
        arrived = max(ready, self.engines[device, engine].free_from)
        if self.not_before > arrived:
            ready, delay = self.not_before, "rank"
        start = self.engines[device, engine].place(ready, time)
        if start > ready:
            delay = "engine"
        arrived = min(arrived, start)
        end = start + time
        if op.is_async:
            for each in (*op.call.results, *op.call.tensors()):
                if each.storage is not None:
                    self.pending[each.storage] = end
        else:
            self.streams[key] = end
        self.last_end = max(self.last_end, end)
        self.line.spans.append(
            Span(
                index,
                work,
                start,
                end,
                launched,
                device,
                stream,
                engine,
                delay,
                arrived,
            )
        )
        return end

    def _wait(self, thread: int, until: float) -> None:
        now = self.now[thread]
        if until > now:
            self.line.waits.append((thread, now, until))
        self.now[thread] = max(now, until) + self.costs.synchronize

    def _host_ops(self, index: int, event: HostOps) -> None:
        del index
        self.now[event.thread] += event.count * self.costs.host_operator

    def _meet(self, index: int, event: Meet) -> None:
        del index
        now = self.now[event.thread]
        if self.not_before > now:
            self.line.waits.append((event.thread, now, self.not_before))
            self.now[event.thread] = self.not_before

    def _mark(self, index: int, event: Mark) -> None:
        del index
        key = (event.device, event.stream)
        self.now[event.thread] += self.costs.event
        self.marks[event.mark] = max(
            self.streams[key], self.blocked[key], self.now[event.thread]
        )

    def _wait_for_mark(self, index: int, event: Wait) -> None:
        del index
        key = (event.device, event.stream)
        self.now[event.thread] += self.costs.event
        self.blocked[key] = max(self.blocked[key], self.marks.get(event.mark, 0.0))

    def _sync(self, index: int, event: Sync) -> None:
        del index
        if event.mark >= 0:
            until = self.marks.get(event.mark, 0.0)
        elif event.stream >= 0:
            until = self.streams[event.device, event.stream]
        else:
            ends = [t for (d, _), t in self.streams.items() if d == event.device]
            until = max((*ends, *self.pending.values()), default=0.0)
        self._wait(event.thread, until)

    def _fork(self, index: int, event: Fork) -> None:
        del index
        self.now[event.thread] += self.costs.thread
        self.now[event.child] = self.now[event.thread]

    def _join(self, index: int, event: Join) -> None:
        del index
        end = self.ended.get(event.child, self.now[event.child])
        self.now[event.thread] = max(self.now[event.thread], end)

    def _capture(self, index: int, event: Capture) -> None:
        del index
        if event.begins:
            self.graphs[event.graph] = []
            self.capturing[event.thread] = event.graph
        else:
            self.capturing.pop(event.thread, None)

    def _replay(self, index: int, event: Replay) -> None:
        del index
        self.now[event.thread] += self.costs.graph
        first = True
        for each in self.graphs.get(event.graph, ()):
            op = self.record.events[each]
            assert isinstance(op, Op)
            if self.works[each].kind != "view":
                stream = event.stream
                self._launch(each, op, self.works[each], stream, in_graph=not first)
                first = False

    def _region(self, index: int, event: Region) -> None:
        del index
        if event.ends:
            return
        self.now[event.thread] += self.costs.region
        if event.graphs:
            self.now[event.thread] += self.costs.graph


def _engine_of(op: Op, work: Work) -> str:
    if op.transfer:
        return op.transfer
    return "link" if work.kind == "collective" else "compute"


_RULES: Mapping[type, Callable[..., None]] = {
    Op: Clock._op,
    HostOps: Clock._host_ops,
    Meet: Clock._meet,
    Mark: Clock._mark,
    Wait: Clock._wait_for_mark,
    Sync: Clock._sync,
    Fork: Clock._fork,
    Join: Clock._join,
    Capture: Clock._capture,
    Replay: Clock._replay,
    Region: Clock._region,
}
