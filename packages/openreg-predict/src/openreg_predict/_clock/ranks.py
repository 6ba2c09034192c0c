# SPDX-License-Identifier: BSD-3-Clause
"""The virtual clocks of several ranks, whose collectives start with the last rank."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping

from openreg_predict._clock.clock import Arrival, Clock, Timeline
from openreg_predict._works.collectives import members


class RanksError(ValueError):
    """The records of ranks do not belong together."""


def run_together(clocks: Mapping[int, Clock]) -> dict[int, Timeline]:
    """Returns the times of all ranks.

    The collectives of a group match by their order in each rank.

    Args:
        clocks: The clock of each rank.

    Raises:
        RanksError: If a collective waits for a rank that does not reach it.
    """
    runs = {rank: clock.steps() for rank, clock in clocks.items()}
    lines: dict[int, Timeline] = {}
    waiting: dict[int, Arrival] = {}
    calls: Counter[tuple[int, str]] = Counter()

    def go(rank: int, start: float | None) -> None:
        """Runs a rank until its next collective, or its end."""
        steps: Generator[Arrival, float, Timeline] = runs[rank]
        try:
            arrival = next(steps) if start is None else steps.send(start)
        except StopIteration as end:
            lines[rank] = end.value
            return
        waiting[rank] = arrival
        calls[rank, arrival.group] += 1

    for rank in runs:
        go(rank, None)
    while waiting:
        for group in sorted({each.group for each in waiting.values()}):
            ranks = [rank for rank in members(group) if rank in runs]
            if all(rank in waiting and waiting[rank].group == group for rank in ranks):
                break
        else:
            rank, arrival = min(waiting.items())
            number = calls[rank, arrival.group]
            raise RanksError(
                f"rank {rank} waits in collective {number} of the group "
                f"{arrival.group!r}, which another rank does not reach; ranks must "
                "begin the collectives of their groups in the same order"
            )
        start = max(waiting[rank].time for rank in ranks)
        for rank in ranks:
            del waiting[rank]
        for rank in ranks:
            go(rank, start)
    return lines
