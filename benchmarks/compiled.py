# SPDX-License-Identifier: BSD-3-Clause
"""Compares compiled programs on openreg and on the CPU.

The same work runs in turn: compiled for the CPU, compiled for the device, and eagerly
on the device.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch
from models import STEPS, steps
from side_by_side import Make, Work, alternate, batch, calls_for, machine
from torch import Tensor
from training import with_wait

KIB = 2**10
compiled = partial(torch.compile, dynamic=False)


def chain(x: Tensor, y: Tensor) -> Tensor:
    """Runs seven pointwise operators, which compile into one kernel."""
    return torch.tanh(x * y + 1) * torch.sigmoid(x) - y.abs()


def applied(elements: int) -> Callable[[Callable[..., object]], Make]:
    """Prepares a function of two tensors."""

    def prepare(function: Callable[..., object]) -> Make:
        def make(device: str) -> Work:
            x, y = (torch.ones(elements, device=device) for _ in range(2))
            return partial(function, x, y)

        return make

    return prepare


CHAINS = {
    f"chain {elements // KIB} Ki": applied(elements)
    for elements in (KIB, 16 * KIB, 64 * KIB, 256 * KIB, 1024 * KIB)
}
# The compiled and the eager work of each case, by name.
CASES: dict[str, tuple[Make, Make]] = {
    **{name: (apply(compiled(chain)), apply(chain)) for name, apply in CHAINS.items()},
    **{
        f"step {name}": (with_wait(make), with_wait(STEPS[name]))
        for name, make in steps(compiled).items()
    },
}


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        name: The case.
        cpu_us: Median time of one call compiled for the CPU, in microseconds.
        device_us: The same for the device.
        eager_us: The same for eager operators on the device.
        ratio: Quartiles of the ratio of device time to CPU time, over the rounds.
        gain: Quartiles of the ratio of compiled to eager time on the device.
    """

    name: str
    cpu_us: float
    device_us: float
    eager_us: float
    ratio: list[float]
    gain: list[float]


def quartiles(of: list[float], by: list[float]) -> list[float]:
    """Returns the quartiles of the ratios of two times in the same round."""
    ratios = [a / b for a, b in zip(of, by, strict=True)]
    return statistics.quantiles(ratios, n=4, method="inclusive")


def measure(name: str, device: str, *, rounds: int, seconds: float) -> Row:
    """Measures the three sides of a case in turn."""
    make, make_eager = CASES[name]
    torch.compiler.reset()
    sides = [("cpu", make("cpu")), (device, make(device)), (device, make_eager(device))]
    for place, work in sides:
        batch(work, place, 3)  # compiles, and fills the caches
    calls = min(calls_for(work, place, seconds) for place, work in sides)
    cpu, ours, eager = alternate(sides, calls=calls, rounds=rounds)
    return Row(
        name,
        *(statistics.median(each) for each in (cpu, ours, eager)),
        ratio=quartiles(ours, cpu),
        gain=quartiles(ours, eager),
    )


def format_row(row: Row) -> str:
    """Formats a row of the table."""
    times = "".join(f"{us:>12.1f}" for us in (row.cpu_us, row.device_us, row.eager_us))
    ratios = "".join(
        f"{middle:>9.2f} ({low:.2f}-{high:.2f})"
        for low, middle, high in (row.ratio, row.gain)
    )
    return f"{row.name:<18}{times}{ratios}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints every row; with --json, also writes them to a file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="openreg")
    parser.add_argument("--case", nargs="+", choices=[*CASES], default=[*CASES])
    parser.add_argument("--threads", type=int, default=1, help="OpenMP threads")
    parser.add_argument(
        "--quick", action="store_true", help="a test run, no measurement"
    )
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    rounds, seconds = (3, 0.001) if options.quick else (31, 0.04)
    print(", ".join(f"{key} {value}" for key, value in machine().items()))
    heads = "".join(
        f"{head:>12}" for head in ("CPU us", f"{options.device} us", "eager us")
    )
    print(f"{'compiled':<18}{heads}{'openreg/CPU':>21}{'compiled/eager':>21}")
    rows = []
    for name in options.case:
        rows.append(measure(name, options.device, rounds=rounds, seconds=seconds))
        print(format_row(rows[-1]), flush=True)
    if options.json is not None:
        report = {"machine": machine(), "rows": [asdict(row) for row in rows]}
        options.json.write_text(json.dumps(report, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
