# SPDX-License-Identifier: BSD-3-Clause
"""Measures PyTorch's operator database on openreg and on the CPU, side by side."""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from side_by_side import Work, alternate, batch, calls_for, machine
from torch import Tensor
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree
from tqdm import tqdm

SECONDS_AT_MOST = 0.05  # skips slower calls, where overhead does not matter


@dataclass(frozen=True)
class Row:
    """One sample of an operator.

    Attributes:
        name: The operator and the number of the sample.
        cpu_us: Median time of one call on the CPU, in microseconds.
        ratio: Median of the ratio of openreg time to CPU time, over the rounds.
    """

    name: str
    cpu_us: float
    ratio: float


def prepared(op: OpInfo, sample: SampleInput, device: str) -> Work:
    """Returns a call of an operator with the values of a sample on a device."""

    def move(tensor: Tensor) -> Tensor:
        return tensor.detach().to(device)

    args, kwargs = pytree.tree_map_only(
        Tensor, move, ((sample.input, *sample.args), dict(sample.kwargs))
    )
    return lambda: op(*args, **kwargs)


def works(work: Work) -> bool:
    """Returns whether a call succeeds; tests/sweeps reports the errors."""
    try:
        work()
        torch.accelerator.synchronize()
    except Exception:
        return False
    return True


def cases(samples: int, only: str) -> Iterator[tuple[str, dict[str, Work]]]:
    """Yields the first samples of each operator, as calls by device."""
    chosen = [op for op in op_db if torch.float32 in op.dtypes and only in op.full_name]
    for op in tqdm(chosen, unit="operator"):
        torch.manual_seed(0)
        made = op.sample_inputs("cpu", torch.float32)
        for i, sample in zip(range(samples), made, strict=False):
            sides = {each: prepared(op, sample, each) for each in ("cpu", "openreg")}
            if all(works(work) for work in sides.values()):
                yield f"{op.full_name} {i}", sides


def measure(name: str, sides: dict[str, Work], rounds: int, seconds: float) -> Row:
    """Measures a sample in alternating batches, each with one synchronization."""
    calls = calls_for(sides["cpu"], "cpu", seconds)
    cpu_times, times = alternate(list(sides.items()), calls=calls, rounds=rounds)
    ratio = statistics.median(
        ours / cpu for ours, cpu in zip(times, cpu_times, strict=True)
    )
    return Row(name, statistics.median(cpu_times), ratio)


def report(rows: Sequence[Row]) -> Iterator[str]:
    """Yields the lines that summarize the rows."""
    ratios = sorted(row.ratio for row in rows)
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    mean = math.exp(statistics.fmean(math.log(each) for each in ratios))
    yield f"samples          {len(ratios)}"
    yield f"geometric mean   {mean:.3f}"
    yield f"median           {middle:.3f}, quartiles {low:.2f}-{high:.2f}"
    yield "slowest"
    for row in sorted(rows, key=lambda row: -row.ratio)[:15]:
        yield f"  {row.ratio:6.2f}  {row.cpu_us:10.1f} us  {row.name}"


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=2, help="samples per operator")
    parser.add_argument("--only", default="", help="part of an operator name")
    parser.add_argument(
        "--quick", action="store_true", help="short batches: a test run, no measurement"
    )
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    options = parser.parse_args(arguments)
    if options.samples < 1:
        parser.error(f"--samples: {options.samples} is less than 1")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures every sample and prints the distribution of the ratios."""
    options = parse_arguments(arguments)
    torch.set_num_threads(1)
    rounds, seconds = (3, 0.0005) if options.quick else (7, 0.004)
    rows: list[Row] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecated operators are measured too
        for name, sides in cases(options.samples, options.only):
            if batch(sides["cpu"], "cpu", 1) < SECONDS_AT_MOST:
                rows.append(measure(name, sides, rounds, seconds))
    if len(rows) < 2:
        print(f"--only: fewer than two samples for {options.only!r}", file=sys.stderr)
        return 1
    print(", ".join(f"{key} {value}" for key, value in machine().items()))
    print("\n".join(report(rows)))
    if options.json is not None:
        document: dict[str, Any] = {
            "machine": machine(),
            "rows": [asdict(row) for row in rows],
        }
        options.json.write_text(json.dumps(document, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
