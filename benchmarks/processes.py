# SPDX-License-Identifier: BSD-3-Clause
"""Times the same work in several processes, in alternating batches of one run.

For settings that a process can read only once, such as its isolation mode and the name
of its devices. A benchmark starts itself again for each side and serves batches there.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Mapping

import torch
from side_by_side import Make, Work, batch, calls_for


def serve(cases: Mapping[str, Make], device: str) -> None:
    """Runs a batch for each line of stdin, which has a case and a number of calls.

    Without a number, it prints the number of calls that take about 20 ms.
    """
    torch.set_num_threads(1)
    works: dict[str, Work] = {}
    for line in sys.stdin:
        case, _, calls = line.strip().partition("\t")
        if case not in works:
            works[case] = cases[case](device)
        if calls:
            print(batch(works[case], device, int(calls)), flush=True)
        else:
            print(calls_for(works[case], device, 0.02), flush=True)


class Side:
    """A process that runs batches.

    Args:
        program: The path of the benchmark, which calls :func:`serve` for ``--serve``.
        device: The device of the work.
        **settings: Environment variables of the process.
    """

    def __init__(self, program: str, device: str, **settings: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, program, "--serve", device],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | settings,
            text=True,
        )

    def ask(self, case: str, calls: int | None = None) -> float:
        """Runs a batch; returns its seconds, or without ``calls`` the batch size."""
        assert self.process.stdin
        assert self.process.stdout
        print(case, calls or "", sep="\t", file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the process ended in the case {case!r}")
        return float(answer)

    def close(self) -> None:
        """Ends the process."""
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def alternate(
    sides: Mapping[str, Side], case: str, *, rounds: int
) -> dict[str, list[float]]:
    """Runs a case on all sides in turn; the sides take turns going first.

    Returns:
        For each side, microseconds per call in each round.
    """
    calls = min(int(side.ask(case)) for side in sides.values())
    times: dict[str, list[float]] = {name: [] for name in sides}
    order = list(sides)
    for _ in range(rounds):
        for name in order:
            times[name].append(sides[name].ask(case, calls) / calls * 1e6)
        order.reverse()
    return times


def format_ratio(of: list[float], by: list[float]) -> str:
    """Formats the median and the quartiles of the ratios of two sides' times."""
    ratios = [a / b for a, b in zip(of, by, strict=True)]
    low, median, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return f"{median:>8.2f} ({low:.2f}-{high:.2f})"
