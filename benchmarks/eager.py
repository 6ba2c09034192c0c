# SPDX-License-Identifier: BSD-3-Clause
"""Measures the cost of eager operators on openreg and on the CPU, side by side."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial

import torch
from models import STEPS
from side_by_side import Make, Row, Work, read_arguments, run
from torch import Tensor

COPY_BYTES = 4 * 2**20


def applied(operator: Callable[..., object], *shapes: Sequence[int]) -> Make:
    """Prepares an operator on tensors of ones with these shapes."""

    def make(device: str) -> Work:
        return partial(
            operator, *(torch.ones(shape, device=device) for shape in shapes)
        )

    return make


def copied(source: str, target: str) -> Work:
    """Returns a copy of 4 MB from one device into a tensor on another device."""
    x = torch.ones(COPY_BYTES // 4, device=source)
    y = torch.zeros(COPY_BYTES // 4, device=target)
    return partial(y.copy_, x)


# Each case is created twice, for the device and for the CPU.
CASES: dict[str, Make] = {
    "allocate 4 kB": lambda device: partial(
        torch.UntypedStorage, 4096, device=torch.device(device)
    ),
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
    **{f"training step {name}": make for name, make in STEPS.items()},
}


def format_title(device: str) -> str:
    """Formats the head of the table of a device."""
    return (
        f"{'one thread':<22}{'CPU us':>11}{device + ' us':>13}"
        f"{'ratio':>8}{'quartiles':>14}"
    )


def format_row(row: Row) -> str:
    """Formats a row of the table."""
    spread = f"{row.low:.2f}-{row.high:.2f}"
    return (
        f"{row.name:<22}{row.cpu_us:>11.2f}{row.device_us:>13.2f}"
        f"{row.ratio:>8.2f}{spread:>14}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints every row; with --json, also writes them to a file."""
    options = read_arguments(__doc__ or "", CASES, arguments)
    run(options, CASES, seconds=0.02, title=format_title, line=format_row)
    return 0


if __name__ == "__main__":
    sys.exit(main())
