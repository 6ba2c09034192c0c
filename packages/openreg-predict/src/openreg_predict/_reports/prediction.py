# SPDX-License-Identifier: BSD-3-Clause
"""The values of a prediction: time, what bounds it, and memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from openreg_predict._analysis.analysis import Analysis
from openreg_predict._clock.clock import Timeline
from openreg_predict._costs.interval import Interval
from openreg_predict._devices.description import DescribedDevice
from openreg_predict._memory.replay import MemoryUse
from openreg_predict._reports.page import page_of
from openreg_predict._reports.text import comparison_of, ranks_table, table_of
from openreg_predict._reports.trace import write_trace

BOUNDS = ("compute", "memory", "launch", "host", "communication", "waiting", "copies")


class Share(NamedTuple):
    """A part of a step: its name, calls, seconds on the device, and share of these."""

    name: str
    calls: float
    seconds: float
    share: float


@dataclass(frozen=True)
class Prediction:
    """The predicted time and memory of a run.

    Attributes:
        device: The described device.
        step: The time of a step, with its 80 % interval.
        total: The time of the whole run.
        steps: How many steps were found; 1 if the run does not repeat itself.
        classes: The operator classes of a step, the longest first.
        modules: The modules of a step, the longest first.
        operators: The operators of a step, the longest first.
        bound: Seconds of a step by what bounds them, see ``BOUNDS``.
        mfu: Matrix operations per second, as a share of the device's peak.
        unclassified: Operators without a class; they count as bound by memory.
        memory: The memory use of each device.
        timeline: The times of all work.
        changed: Predicts steps of changed devices and hosts, for ``what_if``.
    """

    device: DescribedDevice
    step: Interval
    total: Interval
    steps: int
    classes: Sequence[Share]
    modules: Sequence[Share]
    operators: Sequence[Share]
    bound: Mapping[str, float]
    mfu: float
    unclassified: Sequence[Share]
    memory: Sequence[MemoryUse]
    timeline: Timeline = field(repr=False)
    analysis: Analysis = field(repr=False)
    options: Mapping[str, Any] = field(repr=False)
    changed: Callable[[], dict[str, float]] = field(repr=False)

    @property
    def fits(self) -> bool:
        """Whether the run fits into the device memory."""
        return all(each.fits for each in self.memory)

    @cached_property
    def what_if(self) -> dict[str, float]:
        """The seconds of a step if the device or its host were different."""
        return self.changed()

    @property
    def price(self) -> float | None:
        """The price of a step, or ``None`` if the device has none per hour."""
        price = self.device.get("price")
        return None if price is None else price * self.step.value / 3600

    def table(self) -> str:
        """Returns the prediction as text for a terminal."""
        return table_of(self)

    def trace(self, path: str | Path) -> None:
        """Writes the virtual time of the run as a trace for Perfetto."""
        write_trace(self, Path(path))

    def html(self, path: str | Path) -> None:
        """Writes the prediction as one page."""
        Path(path).write_text(page_of(self), encoding="utf-8")

    def to_dict(self) -> dict[str, Any]:
        """Returns the prediction for JSON."""
        low, high = self.memory[0].bounds() if self.memory else (0, 0)
        peak = self.memory[0].reserved_peak if self.memory else 0
        return {
            "device": self.device.id,
            "step_s": asdict(self.step),
            "total_s": asdict(self.total),
            "steps": self.steps,
            "peak_memory_bytes": {"value": peak, "low": low, "high": high},
            "fits": self.fits,
            "bound": dict(self.bound),
            "mfu": self.mfu,
            "price_per_step": self.price,
            "classes": [each._asdict() for each in self.classes],
            "modules": [each._asdict() for each in self.modules],
            "operators": [each._asdict() for each in self.operators],
            "unclassified": [each._asdict() for each in self.unclassified],
            "what_if": self.what_if,
            "memory": [each.to_dict() for each in self.memory],
            "assumed": self.analysis.record.assumed,
            "problems": self.analysis.record.problems,
        }


@dataclass(frozen=True)
class RanksPrediction:
    """The predictions of the ranks of one run.

    Attributes:
        ranks: The prediction of each rank, on a common virtual clock.
    """

    ranks: Mapping[int, Prediction]

    @property
    def slowest(self) -> Prediction:
        """The prediction of the rank with the longest step."""
        return max(self.ranks.values(), key=lambda each: each.step.value)

    @property
    def step(self) -> Interval:
        """The time of a step of the slowest rank, with its 80 % interval."""
        return self.slowest.step

    @property
    def fits(self) -> bool:
        """Whether all ranks fit into the device memory."""
        return all(each.fits for each in self.ranks.values())

    def table(self) -> str:
        """Returns the ranks, and the slowest one in detail, as text."""
        return ranks_table(self)

    def to_dict(self) -> dict[str, Any]:
        """Returns the predictions for JSON."""
        return {
            "step_s": asdict(self.step),
            "fits": self.fits,
            "ranks": {str(rank): p.to_dict() for rank, p in self.ranks.items()},
        }


@dataclass(frozen=True)
class Comparison:
    """The predictions of one record for several devices."""

    predictions: Sequence[Prediction]

    def table(self) -> str:
        """Returns the devices as text for a terminal, the fastest first."""
        return comparison_of(self)

    def to_dict(self) -> list[dict[str, Any]]:
        """Returns the predictions for JSON."""
        return [each.to_dict() for each in self.predictions]
