# SPDX-License-Identifier: BSD-3-Clause
"""Times the same work on devices and on the CPU, in alternating batches of one run."""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

import torch

Work = Callable[[], object]
Make = Callable[[str], Work]  # makes the work of a device


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


def calls_for(
    work: Work,
    device: str,
    seconds: float,
    timed: Callable[[Work, str, int], float] = batch,
) -> int:
    """Finds how many calls fill about ``seconds``; warms the operation up as well.

    Args:
        work: What a call does.
        device: Where; what ``timed`` takes for it.
        seconds: How long a batch is to take.
        timed: How the time of a batch is taken.
    """
    calls = 1
    while (taken := timed(work, device, calls)) < seconds / 4:
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


def compare(name: str, make: Make, device: str, *, rounds: int, seconds: float) -> Row:
    """Measures one case on ``device`` and on the CPU in alternating batches.

    Args:
        name: Of the row.
        make: Makes the work, once for each side.
        device: Device to compare with the CPU.
        rounds: Pairs of batches to take, at least 2.
        seconds: Rough length of a batch on the CPU.
    """
    sides = [(place, make(place)) for place in ("cpu", device)]
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


def read_arguments(
    description: str, cases: Iterable[str], arguments: Sequence[str] | None
) -> argparse.Namespace:
    """Reads the command line of a benchmark with these cases."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--device",
        nargs="+",
        default=["openreg"],
        help="devices to compare with the CPU (default: openreg)",
    )
    known = list(cases)
    parser.add_argument(
        "--case", nargs="+", choices=known, default=known, help="rows to measure"
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


def run(
    options: argparse.Namespace,
    cases: Mapping[str, Make],
    *,
    seconds: float,
    title: Callable[[str], str],
    line: Callable[[Row], str],
) -> None:
    """Measures and prints every row, and writes them as JSON if asked.

    Args:
        options: What :func:`read_arguments` gave.
        cases: Work by the name of its row.
        seconds: Rough length of a batch on the CPU.
        title: Gives the head of a device's table.
        line: Gives a row of it.
    """
    torch.set_num_threads(1)
    rounds, seconds = (3, 0.001) if options.quick else (31, seconds)
    print(", ".join(f"{key} {value}" for key, value in machine().items()))
    print(backend())
    rows = []
    for device in options.device:
        print(f"\n{title(device)}")
        for name in options.case:
            rows.append(
                compare(name, cases[name], device, rounds=rounds, seconds=seconds)
            )
            print(line(rows[-1]), flush=True)
    if options.json is not None:
        report = {"machine": machine(), "rows": [asdict(row) for row in rows]}
        options.json.write_text(json.dumps(report, indent=2) + "\n")
