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
Make = Callable[[str], Work]  # returns the work for a device


@dataclass(frozen=True)
class Row:
    """One line of the table: an operation on one device, against the CPU.

    Attributes:
        name: The case.
        device: The device to compare with the CPU.
        cpu_us: Median time of one call on the CPU, in microseconds.
        device_us: Median time of one call on the device, in microseconds.
        ratio: Median of the ratio of device time to CPU time, over the rounds.
        low: Lower quartile of the ratio.
        high: Upper quartile of the ratio.
        rounds: The number of rounds.
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
    """Waits for the work of ``device``; returns immediately for the CPU."""
    if torch.device(device).type != "cpu":
        torch.accelerator.synchronize(device)


def batch(work: Work, device: str, calls: int) -> float:
    """Times ``calls`` calls and a wait at the end.

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
    """Returns the number of calls that take about ``seconds``, after a warm-up.

    Args:
        work: The work of a call.
        device: The device, as ``timed`` expects it.
        seconds: The time that a batch should take.
        timed: The function that times a batch.
    """
    calls = 1
    while (taken := timed(work, device, calls)) < seconds / 4:
        calls *= 2
    return max(1, round(calls * seconds / taken))


def alternate(
    sides: Sequence[tuple[str, Work]], *, calls: int, rounds: int
) -> list[list[float]]:
    """Times the same work on several devices in alternating batches.

    All sides run the same number of calls in each round and take turns going first, so
    that noise on the machine affects all of them. The first batch of each is not timed.

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
        name: The name of the row.
        make: Returns the work; called once for each side.
        device: The device to compare with the CPU.
        rounds: The number of pairs of batches, at least 2.
        seconds: The approximate time of a batch on the CPU.
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
    """Describes the machine and the versions."""
    return {
        "machine": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "threads": str(torch.get_num_threads()),
    }


def backend() -> str:
    """Names the measured backend and the reason why no other backend is measured.

    PyTorch's in-tree reference has the same package name, and a process can use one
    PrivateUse1 backend, so each backend is measured in a separate environment.
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
        "--quick", action="store_true", help="few short batches: a test run"
    )
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    options = parser.parse_args(arguments)
    for device in options.device:
        try:
            torch.ones(1, device=device)
        except (RuntimeError, AssertionError, ImportError) as error:
            reason = str(error).splitlines()[0]
            parser.error(f"--device: {device!r} is not a usable device: {reason}")
    return options


def run(
    options: argparse.Namespace,
    cases: Mapping[str, Make],
    *,
    seconds: float,
    title: Callable[[str], str],
    line: Callable[[Row], str],
) -> None:
    """Measures and prints every row; with --json, also writes them to a file.

    Args:
        options: The result of :func:`read_arguments`.
        cases: The work of each row, by name.
        seconds: The approximate time of a batch on the CPU.
        title: Returns the head of the table of a device.
        line: Returns a row of the table.
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
