# SPDX-License-Identifier: BSD-3-Clause
"""Measures training steps on openreg with and without a graph, side by side.

The same step runs operator by operator, and as a graph replay. The host waits for the
device at the end of a batch of steps.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial

import torch
from models import GPT, STEPS, tiny_mlp, training_step
from side_by_side import (
    Make,
    Work,
    alternate,
    backend,
    calls_for,
    machine,
    read_arguments,
)

_ADAMW = partial(torch.optim.AdamW, capturable=True)

CASES: dict[str, Make] = {
    "tiny MLP, SGD": training_step(
        tiny_mlp,
        torch.optim.SGD,
        lambda: torch.randn(8, 16),
        lambda: torch.randint(10, (8,)),
    ),
    "tiny MLP, AdamW": training_step(
        tiny_mlp,
        _ADAMW,
        lambda: torch.randn(8, 16),
        lambda: torch.randint(10, (8,)),
    ),
    "tiny GPT, AdamW": training_step(
        partial(GPT, 32),
        _ADAMW,
        lambda: torch.randint(64, (4, 16)),
        lambda: torch.randint(64, (4, 16)),
    ),
    "MLP": STEPS["MLP"],
    "convnet": STEPS["convnet"],
}


@dataclass(frozen=True)
class Row:
    """One model on one device.

    Attributes:
        name: The model and the optimizer.
        device: The device.
        eager_us: Median time of a step, operator by operator, in microseconds.
        graph_us: Median time of a graph replay.
        ratio: Median of the ratio of graph time to eager time, over the rounds.
        low: Lower quartile of the ratio.
        high: Upper quartile of the ratio.
    """

    name: str
    device: str
    eager_us: float
    graph_us: float
    ratio: float
    low: float
    high: float


def replayed(step: Work, device: str) -> Work:
    """Captures a step after a warm-up and returns its replay."""
    stream = torch.Stream(device=device)
    stream.wait_stream(torch.accelerator.current_stream(device))
    with stream:
        for _ in range(3):
            step()
    graph = torch.accelerator.Graph()
    with stream, graph:
        step()

    def replay() -> Work:
        graph.replay()
        return step  # keeps the tensors that the graph reads and writes

    return replay


def compare(name: str, device: str, *, rounds: int, seconds: float) -> Row:
    """Measures one case in alternating batches without and with a graph."""
    make = CASES[name]
    eager, graph = make(device), replayed(make(device), device)
    calls = calls_for(eager, device, seconds)
    sides = [(device, eager), (device, graph)]
    plain, replays = alternate(sides, calls=calls, rounds=rounds)
    ratios = [each / other for each, other in zip(replays, plain, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    medians = statistics.median(plain), statistics.median(replays)
    return Row(name, device, *medians, middle, low, high)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints every model; with --json, also writes them to a file."""
    options = read_arguments(__doc__ or "", CASES, arguments)
    torch.set_num_threads(1)
    rounds, seconds = (3, 0.001) if options.quick else (31, 0.05)
    print(", ".join(f"{key} {value}" for key, value in machine().items()))
    print(backend())
    rows = []
    for device in options.device:
        head = f"{'eager us':>10}{'graph us':>10}{'graph/eager':>13}{'quartiles':>14}"
        print(f"\n{device + ' step':<18}{head}")
        for name in options.case:
            rows.append(compare(name, device, rounds=rounds, seconds=seconds))
            row = rows[-1]
            times = f"{row.eager_us:>10.1f}{row.graph_us:>10.1f}"
            spread = f"{row.low:.2f}-{row.high:.2f}"
            print(f"{name:<18}{times}{row.ratio:>13.2f}{spread:>14}", flush=True)
    if options.json is not None:
        report = {"machine": machine(), "rows": [asdict(row) for row in rows]}
        options.json.write_text(json.dumps(report, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
