# SPDX-License-Identifier: BSD-3-Clause
"""Compares a device in a separate process with a device in this process.

A process has one isolation mode, so each side is a separate process. The sides run
their batches in turn: the CPU, OPENREG_ISOLATION=thread and OPENREG_ISOLATION=process.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

import torch
from models import STEPS
from side_by_side import Make, Work, batch, calls_for, synchronize

MIB = 2**20
SIDES = {
    "cpu": ("cpu", "thread"),
    "thread": ("openreg", "thread"),
    "process": ("openreg", "process"),
}


def waited(work: Work, device: str) -> Work:
    """Adds a wait of the host after each call."""

    def call() -> None:
        work()
        synchronize(device)

    return call


def added(device: str) -> Work:
    """Returns an addition of eight numbers."""
    x = torch.ones(8, device=device)
    return partial(torch.add, x, x)


def copied(device: str, pinned: bool, to_device: bool) -> Work:
    """Returns a copy of 64 MiB between the host and a device."""
    host = torch.ones(64 * MIB // 4, pin_memory=pinned and device != "cpu")
    x = torch.zeros(64 * MIB // 4, device=device)
    if to_device:
        return partial(x.copy_, host, non_blocking=pinned)
    return partial(host.copy_, x, non_blocking=pinned)


START = "start"
STARTS = ("first device", "next device", "after a reset")
CASES: dict[str, Make] = {
    "add 8": added,
    "add 8, wait": lambda device: waited(added(device), device),
    "item": lambda device: torch.ones((), device=device).item,
    "64 MiB pinned H2D": lambda device: copied(device, pinned=True, to_device=True),
    "64 MiB pinned D2H": lambda device: copied(device, pinned=True, to_device=False),
    "64 MiB H2D": lambda device: copied(device, pinned=False, to_device=True),
    "64 MiB D2H": lambda device: copied(device, pinned=False, to_device=False),
    **{f"training step {name}": make for name, make in STEPS.items()},
}


def started() -> list[float]:
    """Returns the start times of the first device, the next one and one after a reset.

    A start time is the number of seconds until the device returns a value.
    """
    steps: list[Callable[[], object]] = [
        lambda: torch.ones(1, device="openreg:0").item(),
        lambda: torch.ones(1, device="openreg:1").item(),
        lambda: (
            torch.openreg.reset_device(0),  # type: ignore[attr-defined]
            torch.ones(1, device="openreg:0").item(),
        ),
    ]
    times = []
    for step in steps:
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    return times


def measure_starts(programs: int) -> None:
    """Prints the start times of device processes in new programs."""
    environment = os.environ | {"OPENREG_ISOLATION": "process"}
    command = [sys.executable, __file__, "--start"]
    rows = [
        subprocess.run(
            command, env=environment, check=True, capture_output=True, text=True
        ).stdout.split()
        for _ in range(programs)
    ]
    print(f"{'start of a device':<24}{'median ms':>12}{'at most ms':>12}")
    for name, column in zip(STARTS, zip(*rows, strict=True), strict=True):
        times = [float(each) * 1e3 for each in column]
        print(f"{name:<24}{statistics.median(times):>12.1f}{max(times):>12.1f}")


def serve(device: str) -> None:
    """Runs a batch for each line of stdin, which has a case and a number of calls.

    Without a number, it prints the number of calls that take about 20 ms.
    """
    torch.set_num_threads(1)
    works: dict[str, Work] = {}
    for line in sys.stdin:
        case, _, calls = line.strip().partition("\t")
        if case not in works:
            works[case] = CASES[case](device)
        if calls:
            print(batch(works[case], device, int(calls)), flush=True)
        else:
            print(calls_for(works[case], device, 0.02), flush=True)


class Side:
    """A process that runs batches.

    Args:
        name: One of ``SIDES``.
    """

    def __init__(self, name: str) -> None:
        device, isolation = SIDES[name]
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve", device],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"OPENREG_ISOLATION": isolation},
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


def measure(sides: dict[str, Side], case: str, rounds: int) -> str:
    """Measures a case on all sides in turn and returns its line of the table."""
    calls = min(int(side.ask(case)) for side in sides.values())
    times: dict[str, list[float]] = {name: [] for name in sides}
    order = list(sides)
    for _ in range(rounds):
        for name in order:
            times[name].append(sides[name].ask(case, calls) / calls * 1e6)
        order.reverse()
    middle = {name: statistics.median(each) for name, each in times.items()}

    def ratio(of: str, by: str) -> str:
        ratios = [a / b for a, b in zip(times[of], times[by], strict=True)]
        low, median, high = statistics.quantiles(ratios, n=4, method="inclusive")
        return f"{median:>8.2f} ({low:.2f}-{high:.2f})"

    columns = "".join(f"{middle[name]:>12.2f}" for name in sides)
    return (
        f"{case:<24}{columns}{ratio('process', 'thread'):>22}"
        f"{ratio('process', 'cpu'):>22}"
    )


def main() -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--start", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument(
        "--case", nargs="+", choices=[*CASES, START], default=[*CASES, START]
    )
    parser.add_argument("--busy", type=int, default=0, help="number of busy processes")
    parser.add_argument(
        "--quick", action="store_true", help="a test run, no measurement"
    )
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return 0
    if options.start:
        print(*started())
        return 0
    others = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(options.busy)
    ]
    sides = {name: Side(name) for name in SIDES}
    try:
        heads = "".join(f"{name + ' us':>12}" for name in sides)
        print(f"{'one thread':<24}{heads}{'process/thread':>22}{'process/cpu':>22}")
        for case in options.case:
            if case == START:
                measure_starts(1 if options.quick else 11)
            else:
                print(measure(sides, case, 3 if options.quick else 31), flush=True)
    finally:
        for side in sides.values():
            side.close()
        for other in others:
            other.kill()
    return 0


if __name__ == "__main__":
    sys.exit(main())
