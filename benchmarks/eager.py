# SPDX-License-Identifier: BSD-3-Clause
"""Measures what eager operators cost on openreg and on the CPU, side by side."""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn

Work = Callable[[], object]
Make = Callable[[str], Work]
COPY_BYTES = 4 * 2**20


@dataclass(frozen=True)
class Row:
    """One line of the table: an operation on one device, against the CPU.

    Attributes:
        name: What was measured.
        device: Device that was compared with the CPU.
        cpu_us: Median time of one call on the CPU, in microseconds.
        device_us: Median time of one call on the device, in microseconds.
        ratio: Median over the rounds of device time by CPU time in the same round.
        low: Lower quartile of that ratio.
        high: Upper quartile of that ratio.
        rounds: How many rounds were taken.
        calls: Calls in each batch of a round.
    """

    name: str
    device: str
    cpu_us: float
    device_us: float
    ratio: float
    low: float
    high: float
    rounds: int
    calls: int


def synchronize(device: str) -> None:
    """Waits for the work given to ``device``; the CPU has nothing to wait for."""
    if torch.device(device).type != "cpu":
        torch.accelerator.synchronize(device)


def applied(operator: Callable[..., object], *shapes: Sequence[int]) -> Make:
    """Prepares an operator on tensors of ones with these shapes."""

    def make(device: str) -> Work:
        return partial(
            operator, *(torch.ones(shape, device=device) for shape in shapes)
        )

    return make


def copied(source: str, target: str) -> Work:
    """Makes the copy of 4 MB from one device into a tensor of another."""
    x = torch.ones(COPY_BYTES // 4, device=source)
    y = torch.zeros(COPY_BYTES // 4, device=target)
    return partial(y.copy_, x)


def mlp() -> nn.Module:
    """Makes a 64-256-256-10 network."""
    return nn.Sequential(
        nn.Linear(64, 256),
        nn.ReLU(),
        nn.Linear(256, 256),
        nn.ReLU(),
        nn.Linear(256, 10),
    )


def convnet() -> nn.Module:
    """Makes two convolutions with batch norms, and a classifier, for 28 x 28 pixels."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * 7 * 7, 10),
    )


class GPT(nn.Module):
    """Two pre-norm decoder layers of width 64 over 64 characters."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(64, 64)
        self.positions = nn.Embedding(32, 64)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                64, 4, 256, 0.0, "gelu", batch_first=True, norm_first=True
            )
            for _ in range(2)
        )
        self.head = nn.Linear(64, 64)

    def forward(self, text: Tensor) -> Tensor:
        """Gives logits (batch, time, 64) for texts (batch, time)."""
        time = text.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(time, device=text.device)
        x = self.tokens(text) + self.positions.weight[:time]
        for layer in self.layers:
            x = layer(x, src_mask=mask, is_causal=True)
        return cast("Tensor", self.head(x)).transpose(1, 2)


def training_step(
    model: Callable[[], nn.Module],
    optimizer: Callable[..., torch.optim.Optimizer],
    inputs: Callable[[], Tensor],
    labels: Callable[[], Tensor],
) -> Make:
    """Prepares one training step of a model with cross entropy."""

    def make(device: str) -> Work:
        torch.manual_seed(0)
        network = model().to(device)
        update = optimizer(network.parameters(), lr=1e-3)
        x, y = inputs().to(device), labels().to(device)

        def step() -> Tensor:
            update.zero_grad()
            loss = nn.functional.cross_entropy(network(x), y)
            loss.backward()
            update.step()
            return loss

        return step

    return make


# Each is made twice, for the device and for the CPU.
CASES: dict[str, Make] = {
    "empty(8)": lambda device: partial(torch.empty, 8, device=device),
    "view": applied(lambda x: x.view(2, 4), [8]),
    "add 8": applied(torch.add, [8], [8]),
    "relu 8": applied(torch.relu, [8]),
    "sum 8": applied(torch.sum, [8]),
    "add 64k": applied(torch.add, [2**16], [2**16]),
    "matmul 256": applied(torch.matmul, [256, 256], [256, 256]),
    "item": applied(Tensor.item, []),
    "copy 4 MB H2D": lambda device: copied("cpu", device),
    "copy 4 MB D2H": lambda device: copied(device, "cpu"),
    "copy 4 MB D2D": lambda device: copied(device, device),
    "training step MLP": training_step(
        mlp,
        partial(torch.optim.SGD, momentum=0.9),
        lambda: torch.randn(64, 64),
        lambda: torch.randint(10, (64,)),
    ),
    "training step convnet": training_step(
        convnet,
        partial(torch.optim.SGD, momentum=0.9),
        lambda: torch.randn(32, 1, 28, 28),
        lambda: torch.randint(10, (32,)),
    ),
    "training step GPT": training_step(
        GPT,
        torch.optim.AdamW,
        lambda: torch.randint(64, (8, 32)),
        lambda: torch.randint(64, (8, 32)),
    ),
}


def batch(work: Work, device: str, calls: int) -> float:
    """Times ``calls`` calls and one wait at their end.

    Returns:
        Seconds for the whole batch.
    """
    start = time.perf_counter()
    for _ in range(calls):
        work()
    synchronize(device)
    return time.perf_counter() - start


def calls_for(work: Work, device: str, seconds: float) -> int:
    """Finds how many calls fill about ``seconds``; warms the operation up as well."""
    calls = 1
    while (taken := batch(work, device, calls)) < seconds / 4:
        calls *= 2
    return max(1, round(calls * seconds / taken))


def alternate(
    sides: Sequence[tuple[str, Work]], *, calls: int, rounds: int
) -> list[list[float]]:
    """Times the same work on several devices in alternating batches.

    All run the same number of calls in each round, and take turns in going first, so
    that a slow moment of the machine falls on all. A first batch of each is not timed.

    Returns:
        For each side, microseconds per call in each round.
    """
    timed = [(device, work, list[float]()) for device, work in sides]
    times = [each for _, _, each in timed]
    for device, work, _ in timed:
        batch(work, device, calls)
    for _ in range(rounds):
        for device, work, of_side in timed:
            of_side.append(batch(work, device, calls) / calls * 1e6)
        timed.reverse()
    return times


def measure(name: str, device: str, *, rounds: int, seconds: float) -> Row:
    """Measures one case on ``device`` and on the CPU in alternating batches.

    Args:
        name: Key of :data:`CASES`.
        device: Device to compare with the CPU.
        rounds: Pairs of batches to take, at least 2.
        seconds: Rough length of a batch on the CPU.
    """
    sides = [(place, CASES[name](place)) for place in ("cpu", device)]
    calls = calls_for(sides[0][1], "cpu", seconds)
    cpu_times, device_times = alternate(sides, calls=calls, rounds=rounds)
    ratios = [ours / cpu for ours, cpu in zip(device_times, cpu_times, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return Row(
        name,
        device,
        statistics.median(cpu_times),
        statistics.median(device_times),
        middle,
        low,
        high,
        rounds,
        calls,
    )


def machine() -> dict[str, str]:
    """Describes where the numbers come from."""
    return {
        "machine": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "threads": str(torch.get_num_threads()),
    }


def backend() -> str:
    """Names the backend that is measured, and says why it stands alone.

    PyTorch's in-tree reference ships a package of the same name, and a process has room
    for one PrivateUse1 backend only, so that each is measured in its own environment.
    """
    versions = {}
    for name in ("torch-openreg", "openreg-aten"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = ""
    if versions["torch-openreg"] and not versions["openreg-aten"]:
        return "measured: PyTorch's in-tree reference backend"
    return (
        f"measured: torch-openreg {versions['torch-openreg'] or 'not installed'}; peer "
        "column left out: PyTorch's in-tree reference is not installed here"
    )


def format_row(row: Row) -> str:
    """Formats a row for people."""
    spread = f"{row.low:.2f}-{row.high:.2f}"
    return (
        f"{row.name:<22}{row.cpu_us:>11.2f}{row.device_us:>13.2f}"
        f"{row.ratio:>8.2f}{spread:>14}"
    )


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--device",
        nargs="+",
        default=["openreg"],
        help="devices to compare with the CPU (default: openreg)",
    )
    parser.add_argument(
        "--case", nargs="+", choices=CASES, default=list(CASES), help="rows to measure"
    )
    parser.add_argument(
        "--quick", action="store_true", help="few short batches: a test, no measurement"
    )
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    options = parser.parse_args(arguments)
    for device in options.device:
        try:
            torch.ones(1, device=device)
        except (RuntimeError, AssertionError, ImportError) as error:
            reason = str(error).splitlines()[0]
            parser.error(f"--device: {device!r} is no usable device: {reason}")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints every row, and writes them as JSON if asked."""
    options = parse_arguments(arguments)
    torch.set_num_threads(1)
    rounds, seconds = (3, 0.001) if options.quick else (31, 0.02)

    print(", ".join(f"{key} {value}" for key, value in machine().items()))
    print(backend())
    rows = []
    for device in options.device:
        print(
            f"\n{'one thread':<22}{'CPU us':>11}{device + ' us':>13}"
            f"{'ratio':>8}{'quartiles':>14}"
        )
        for name in options.case:
            rows.append(measure(name, device, rounds=rounds, seconds=seconds))
            print(format_row(rows[-1]), flush=True)
    if options.json is not None:
        report = {"machine": machine(), "rows": [asdict(row) for row in rows]}
        options.json.write_text(json.dumps(report, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
