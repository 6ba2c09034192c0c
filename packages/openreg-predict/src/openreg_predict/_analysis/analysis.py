# SPDX-License-Identifier: BSD-3-Clause
"""The facts about a record that its cost needs and no device changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from openreg_predict._analysis.fusion import Fusion, fuse
from openreg_predict._analysis.steps import steps_of
from openreg_predict._analysis.works import is_product, works_of
from openreg_predict._memory.replay import MemoryModel, Plan
from openreg_predict._records.record import RecordedRun
from openreg_predict._works.work import Work


@dataclass(frozen=True)
class Analysis:
    """The facts about a record that its cost needs and no device changes."""

    record: RecordedRun
    works: Mapping[int, Work]
    fusion: Fusion
    steps: Sequence[tuple[int, int]]
    memory: MemoryModel

    @classmethod
    def of(cls, record: RecordedRun, *, find_steps: bool) -> Analysis:
        """Analyzes a record."""
        works = works_of(record)
        fusion = fuse(record, works)
        products = {i for i, work in works.items() if is_product(work)}
        plan = Plan(elided=fusion.elided, kept=fusion.kept, ended=fusion.ended)
        steps = steps_of(record) if find_steps else [(0, len(record.events))]
        memory = MemoryModel(record, products, plan)
        return cls(record, works, fusion, steps, memory)


def analyze(record: RecordedRun, *, find_steps: bool = False) -> Analysis:
    """Returns the analysis of a record, which is made once."""
    known: dict[bool, tuple[int, Analysis]] = record.__dict__.setdefault(
        "_analyses", {}
    )
    count = len(record.events)
    if find_steps not in known or known[find_steps][0] != count:
        known[find_steps] = count, Analysis.of(record, find_steps=find_steps)
    return known[find_steps][1]
