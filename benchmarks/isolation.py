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
from processes import Side, alternate, format_ratio, serve
from side_by_side import Make, Work, synchronize

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


def measure(sides: dict[str, Side], case: str, rounds: int) -> str:
    """Measures a case on all sides in turn and returns its line of the table."""
    times = alternate(sides, case, rounds=rounds)
    columns = "".join(f"{statistics.median(times[name]):>12.2f}" for name in sides)
    to_thread = format_ratio(times["process"], times["thread"])
    to_cpu = format_ratio(times["process"], times["cpu"])
    return f"{case:<24}{columns}{to_thread:>22}{to_cpu:>22}"


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
        serve(CASES, options.serve)
        return 0
    if options.start:
        print(*started())
        return 0
    others = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(options.busy)
    ]
    sides = {
        name: Side(__file__, device, OPENREG_ISOLATION=isolation)
        for name, (device, isolation) in SIDES.items()
    }
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
