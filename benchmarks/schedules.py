# SPDX-License-Identifier: BSD-3-Clause
"""Measures a training step in each mode that finds bugs, next to the default."""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from models import STEPS
from torch.openreg import sanitizer

from torch_openreg.testing import schedule

MODES = ("lazy", "random:0", "random:1", "random:2", "sanitizer")
SECONDS = 0.1  # of a batch


@contextmanager
def mode_of(name: str) -> Iterator[None]:
    """Runs a block in a mode."""
    if name == "sanitizer":
        with sanitizer.enabled():
            yield
    else:
        with schedule(name):
            yield


def seconds_of(step: Callable[[], torch.Tensor], name: str, count: int) -> float:
    """Returns the seconds per step, each with a wait at its end."""
    with mode_of(name):
        start = time.perf_counter()
        for _ in range(count):
            step().item()
        return (time.perf_counter() - start) / count


def ratios(step: Callable[[], torch.Tensor], name: str, pairs: int) -> list[float]:
    """Returns the ratios of the step times of pairs of batches."""
    count = max(1, round(SECONDS / seconds_of(step, "eager", 3)))
    found = []
    for pair in range(pairs + 1):
        order = ("eager", name) if pair % 2 else (name, "eager")
        times = {each: seconds_of(step, each, count) for each in order}
        found.append(times[name] / times["eager"])
    return found[1:]


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the median ratio of each model and mode."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", nargs="*", default=["MLP", "GPT"], choices=STEPS)
    parser.add_argument("--pairs", type=int, default=11)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    print("step time divided by the default".ljust(34), "median  quartiles")
    for case in options.case:
        step = STEPS[case]("openreg")
        for _ in range(3):
            step().item()
        for name in MODES:
            found = sorted(ratios(step, name, options.pairs))
            low, median, high = statistics.quantiles(found, n=4)
            print(f"{case}, {name}".ljust(34), f"{median:6.2f}  {low:.2f}-{high:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
