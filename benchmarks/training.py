# SPDX-License-Identifier: BSD-3-Clause
"""Measures the training speed of models on openreg and on the CPU, side by side.

The host waits for the device once in each step, like a program that reads its loss.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from models import STEPS
from side_by_side import Make, Row, Work, read_arguments, run, synchronize


def with_wait(make: Make) -> Make:
    """Adds a wait for the device to the end of each step."""

    def make_with_wait(device: str) -> Work:
        step = make(device)

        def step_and_wait() -> None:
            step()
            synchronize(device)

        return step_and_wait

    return make_with_wait


CASES = {name: with_wait(make) for name, make in STEPS.items()}


def format_title(device: str) -> str:
    """Formats the head of the table of a device."""
    return (
        f"{'steps per second':<18}{'CPU':>9}{device:>11}"
        f"{'ratio of step time':>22}{'quartiles':>14}"
    )


def format_row(row: Row) -> str:
    """Formats a row of the table."""
    spread = f"{row.low:.2f}-{row.high:.2f}"
    return (
        f"{row.name:<18}{1e6 / row.cpu_us:>9.1f}{1e6 / row.device_us:>11.1f}"
        f"{row.ratio:>22.2f}{spread:>14}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints every model; with --json, also writes them to a file."""
    options = read_arguments(__doc__ or "", CASES, arguments)
    run(options, CASES, seconds=0.1, title=format_title, line=format_row)
    return 0


if __name__ == "__main__":
    sys.exit(main())
