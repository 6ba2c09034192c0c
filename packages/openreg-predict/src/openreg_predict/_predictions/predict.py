# SPDX-License-Identifier: BSD-3-Clause
"""Predicts the time and the memory of a record on a device."""

from __future__ import annotations

import os
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from openreg_predict._analysis.analysis import Analysis, analyze
from openreg_predict._clock.clock import Clock, Span, Timeline
from openreg_predict._clock.costs import Costs
from openreg_predict._clock.ranks import RanksError, run_together
from openreg_predict._costs.interval import Interval, total
from openreg_predict._devices.description import DescribedDevice, load_device
from openreg_predict._devices.host import Host
from openreg_predict._records.record import RecordedRun
from openreg_predict._reports.prediction import (
    BOUNDS,
    Prediction,
    RanksPrediction,
    Share,
)
from openreg_predict._works.work import Work

_MATRIX = ("gemm", "grouped", "attention", "convolution")
# Bounds of the host's times, as factors.
_HOST_BELOW, _HOST_ABOVE = 0.6, 1.6
_FAST = 1e30
_SETTINGS = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")


def predict_record(
    record: RecordedRun,
    device: DescribedDevice | str | Path,
    *,
    sheet_only: bool = False,
    find_steps: bool = False,
    expandable: bool | None = None,
    host_per_operator: float | None = None,
) -> Prediction:
    """Predicts time and memory of a record on a device.

    Args:
        record: The record.
        device: A device, the name of one, or the path of its YAML file.
        sheet_only: Whether to ignore measured fields of the device.
        find_steps: Whether to look for repeated steps; otherwise the record is one.
        expandable: Whether the segments of the allocator grow, as with the setting
            ``expandable_segments:True``; by default what ``PYTORCH_CUDA_ALLOC_CONF`` or
            ``PYTORCH_ALLOC_CONF`` sets.
        host_per_operator: Seconds that the host needs for an eager operator; its other
            times are scaled with it. By default the field of the device, or 6 us.
    """
    device, options, find_steps = _given(
        device,
        sheet_only=sheet_only,
        find_steps=find_steps,
        expandable=expandable,
        host_per_operator=host_per_operator,
    )
    analysis = analyze(record, find_steps=find_steps)
    return _Run(analysis, device, options).prediction()


def _given(
    device: DescribedDevice | str | Path,
    *,
    sheet_only: bool = False,
    find_steps: bool = False,
    expandable: bool | None = None,
    host_per_operator: float | None = None,
) -> tuple[DescribedDevice, dict[str, Any], bool]:
    """Returns the device, the options for its runs, and whether to find steps."""
    if not isinstance(device, DescribedDevice):
        device = load_device(device)
    if sheet_only:
        device = device.sheet
    if expandable is None:
        settings = [os.environ.get(name, "") for name in _SETTINGS]
        expandable = "expandable_segments:True" in ",".join(settings)
    options = {
        "sheet_only": sheet_only,
        "expandable": expandable,
        "host_per_operator": host_per_operator,
    }
    return device, options, find_steps


def mark_times(record: RecordedRun, device: DescribedDevice) -> dict[int, float]:
    """Returns the times of the events that a program recorded in streams."""
    run = _Run(analyze(record), device, {"sheet_only": False, "expandable": False})
    return run.marks()


def predict_ranks(
    records: Sequence[RecordedRun], device: DescribedDevice | str | Path, **options: Any
) -> RanksPrediction:
    """Predicts the ranks of one run, each from its record, on one kind of device.

    A collective starts when the last rank of its group has reached it, so a slow rank
    shows as time that the others wait.

    Args:
        records: The record of each rank.
        device: A device, the name of one, or the path of its YAML file.
        **options: See :func:`predict_record`.

    Raises:
        RanksError: If the records are not of different ranks, or if a collective waits
            for a rank that does not reach it.
    """
    by_rank = {record.rank: record for record in records}
    if len(by_rank) < len(records) or not records:
        ranks = ", ".join(str(each.rank) for each in records) or "none"
        raise RanksError(f"the records must be of different ranks, got: {ranks}")
    device, settings, find_steps = _given(device, **options)
    job = _Job(
        {
            rank: _Run(analyze(by_rank[rank], find_steps=find_steps), device, settings)
            for rank in sorted(by_rank)
        }
    )
    return RanksPrediction({rank: run.prediction() for rank, run in job.runs.items()})


class _Run:
    """The clocks of one record on one device.

    ``job`` has the other ranks of the run, if there are any.
    """

    job: _Job | None = None

    def __init__(
        self,
        analysis: Analysis,
        device: DescribedDevice,
        options: Mapping[str, Any],
        host_scale: float = 1.0,
    ) -> None:
        self.analysis = analysis
        self.device = device
        self.options = options
        self.costs = Costs(device, sheet_only=options["sheet_only"])
        self.expandable: bool = options["expandable"]
        fused = [k.work for k in analysis.fusion.kernels.values() if k.work is not None]
        self.costs.prepare([*analysis.works.values(), *fused])
        host = Host.of(device, options.get("host_per_operator"))
        self.host = _scaled(host, host_scale)

    def _line(self, bound: str = "value", host: float = 1.0) -> Timeline:
        if self.job is not None:
            return self.job.line(self, bound, host)
        return self.clock(bound, host).run()

    def clock(self, bound: str, host: float) -> Clock:
        """Returns a clock for one of the bounds, and a factor of the host's times."""
        costs = self.costs
        analysis = self.analysis
        return Clock(
            analysis.record,
            analysis.works,
            lambda work: float(getattr(costs(work), bound)),
            _scaled(self.host, host),
            analysis.fusion,
        )

    def _measured(self) -> tuple[int, int, int]:
        """Returns the first and last event of the steps to measure, and their number.

        The first steps of a run are not typical.
        """
        steps = self.analysis.steps
        used = steps[1:][-3:] or steps
        return used[0][0], used[-1][1], len(used)

    def _times(self, line: Timeline) -> tuple[float, float]:
        """Returns the begin and the end of the measured steps."""
        first, last, _ = self._measured()
        whole = first == 0 and last == len(line.done)
        begin = 0.0 if first == 0 else line.done[first - 1]
        return begin, line.end if whole else line.done[last - 1]

    def marks(self) -> dict[int, float]:
        return self._line().marks

    def step_seconds(self) -> float:
        begin, end = self._times(self._line())
        return (end - begin) / self._measured()[2]

    def prediction(self) -> Prediction:
        line = self._line()
        low, high = self._line("low", _HOST_BELOW), self._line("high", _HOST_ABOVE)
        begin, end = self._times(line)
        first, last, count = self._measured()
        spans = [
            s
            for s in line.spans
            if s.end > begin and s.start < end and first <= s.index < last
        ]
        step = self._interval(spans, line, low, high, count)
        classes, modules, operators, unknown = self._shares(spans, count)
        flops = sum(s.work.flops for s in spans if s.work.kind in _MATRIX) / count
        peak = self._peak(spans)
        bound = self._bound(spans, begin, end, count)
        ratio = line.end / max(end - begin, 1e-30) * count
        return Prediction(
            self.device,
            step,
            Interval(
                line.end,
                min(step.low * ratio, line.end),
                max(step.high * ratio, line.end),
            ),
            len(self.analysis.steps),
            classes,
            modules,
            operators,
            bound,
            flops / (peak * step.value) if peak and step.value else 0.0,
            unknown,
            [
                self.analysis.memory.use(self.device, index, expandable=self.expandable)
                for index in self.analysis.memory.devices()
            ],
            line,
            self.analysis,
            self.options,
            lambda: self._what_if(links=bound["communication"] > 0),
        )

    def _what_if(self, *, links: bool) -> dict[str, float]:
        """Returns the seconds of a step if the device or its host were different."""
        device = self.device
        changes = {
            "2x memory bandwidth": (device.scaled(memory_bandwidth=2), 1.0),
            "no host or launch time": (device, 0.0),
        }
        if links:
            names = [n for n in ("link_bandwidth", "network_bandwidth")
                     if n in device.fields]  # fmt: skip
            faster = device.scaled(**dict.fromkeys(names, _FAST))
            changes["infinite link"] = faster, 1.0
        return {
            name: self._changed(changed, host).step_seconds()
            for name, (changed, host) in changes.items()
        }

    def _changed(self, device: DescribedDevice, host: float) -> _Run:
        """Returns this run on another device, together with its other ranks."""
        runs = [self] if self.job is None else list(self.job.runs.values())
        changed = {
            run.analysis.record.rank: _Run(run.analysis, device, run.options, host)
            for run in runs
        }
        if self.job is not None:
            _Job(changed)
        return changed[self.analysis.record.rank]

    def _interval(
        self,
        spans: Sequence[Span],
        line: Timeline,
        low: Timeline,
        high: Timeline,
        count: int,
    ) -> Interval:
        """Returns the time of a step.

        The clocks of all lower and of all upper bounds assume that all errors are
        equal; the interval is as much narrower as the sum of the times is.
        """
        value, least, most = (
            (end - begin) / count for begin, end in map(self._times, (line, low, high))
        )
        times = [self.costs(span.work) for span in spans]
        together = total(times)
        below = sum(t.value - t.low for t in times)
        above = sum(t.high - t.value for t in times)
        shrink_low = (together.value - together.low) / below if below else 1.0
        shrink_high = (together.high - together.value) / above if above else 1.0
        return Interval(
            value,
            min(value - max(value - least, 0.0) * shrink_low, value),
            max(value + max(most - value, 0.0) * shrink_high, value),
        )

    def _shares(self, spans: Sequence[Span], count: int) -> list[list[Share]]:
        record = self.analysis.record
        seconds: list[dict[str, list[float]]] = [defaultdict(list) for _ in range(4)]
        for span in spans:
            time = span.end - span.start
            op = record.events[span.index]
            module = record.modules[getattr(op, "module", 0)]
            seconds[0][span.work.kind].append(time)
            seconds[1][module or "(outside of modules)"].append(time)
            seconds[2][span.work.operator].append(time)
            if span.work.kind == "unknown":
                seconds[3][span.work.operator].append(time)
        whole = sum(span.end - span.start for span in spans) or 1.0
        return [
            sorted(
                (
                    Share(name, len(x) / count, sum(x) / count, sum(x) / whole)
                    for name, x in part.items()
                ),
                key=lambda share: (-share.seconds, share.name),
            )
            for part in seconds
        ]

    def _peak(self, spans: Sequence[Span]) -> float:
        """Returns the peak rate of the dtype that has most of the operations."""
        flops: dict[str, float] = defaultdict(float)
        for span in spans:
            if span.work.kind in _MATRIX:
                flops[span.work.dtype.split(">")[0]] += span.work.flops
        if not flops:
            return 0.0
        dtype = max(flops, key=lambda name: flops[name])
        names = (f"matrix_{dtype}", "matrix_bf16" if dtype == "f16" else "matrix_f16")
        if dtype in ("f32", "f64"):
            names = (f"matrix_{dtype}", f"vector_{dtype}")
        return self.device.get(*names, "vector_f32") or 0.0

    def _bound(
        self,
        spans: Sequence[Span],
        begin: float,
        end: float,
        count: int,
    ) -> dict[str, float]:
        """Returns the seconds of a step by what bounds them; their sum is the step."""
        result = dict.fromkeys(BOUNDS, 0.0)
        now = begin
        order = {"compute": 0, "link": 1}
        ordered = sorted(
            spans, key=lambda s: (s.start, order.get(s.engine, 2), s.index)
        )
        # Kernels come first: a collective counts where no kernel runs.
        compute = [s for s in ordered if s.engine == "compute"]
        others = deque(s for s in ordered if s.engine != "compute")
        for span in compute:
            if span.start > now:
                self._add_gap(result, others, span, now, span.start)
            part = max(0.0, min(span.end, end) - max(span.start, now))
            result[self._kind(span.work)] += part
            now = max(now, min(span.end, end))
        if end > now:
            self._add_gap(result, others, None, now, end)
        return {name: value / count for name, value in result.items()}

    def _add_gap(
        self,
        result: dict[str, float],
        others: deque[Span],
        following: Span | None,
        begin: float,
        end: float,
    ) -> None:
        now = begin
        while others and others[0].end <= begin:
            others.popleft()  # gaps come in their order
        for span in others:
            if span.end <= now:
                continue
            if span.start >= end:
                break
            self._add_idle(result, span, now, max(now, span.start))
            used = min(span.end, end) - max(span.start, now)
            result["communication" if span.engine == "link" else "copies"] += used
            now = min(span.end, end)
        self._add_idle(result, following, now, max(now, end))

    def _add_idle(
        self, result: dict[str, float], next_: Span | None, begin: float, end: float
    ) -> None:
        """Adds time without work, which some work ended."""
        if next_ is not None and next_.delay == "rank":
            arrived = min(max(next_.arrived, begin), end)
            result["waiting"] += end - arrived
            result["host"] += arrived - begin
            return
        waited = next_ is not None and next_.delay != "host"
        result["waiting" if waited else "host"] += end - begin

    def _kind(self, work: Work) -> str:
        device = self.device
        time = self.costs(work).value
        rate = device.get(f"matrix_{work.dtype.split('>')[0]}") or device["vector_f32"]
        if work.kind not in _MATRIX:
            rate = device["vector_f32"]
        compute = work.flops / rate
        memory = work.bytes / device["memory_bandwidth"]
        if max(compute, memory) < 0.4 * time:
            return (
                "launch"
                if time < 2e-5
                else ("memory" if memory > compute else "compute")
            )
        return "compute" if compute > memory else "memory"


class _Job:
    """The runs of several ranks, whose clocks run together."""

    def __init__(self, runs: Mapping[int, _Run]) -> None:
        self.runs = runs
        self.lines: dict[tuple[str, float], dict[int, Timeline]] = {}
        for run in runs.values():
            run.job = self

    def line(self, run: _Run, bound: str, host: float) -> Timeline:
        """Returns the times of a rank."""
        if (bound, host) not in self.lines:
            clocks = {r: each.clock(bound, host) for r, each in self.runs.items()}
            self.lines[bound, host] = run_together(clocks)
        return self.lines[bound, host][run.analysis.record.rank]


def _scaled(host: Host, factor: float) -> Host:
    if factor == 1.0:
        return host
    return replace(host, **{k: v * factor for k, v in asdict(host).items()})
