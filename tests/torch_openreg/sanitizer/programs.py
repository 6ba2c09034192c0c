# SPDX-License-Identifier: BSD-3-Clause
"""What the programs of these tests are made of."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable

import torch

Access = Callable[[torch.Stream, torch.Stream], object]
DEVICE = "openreg:0"
new = functools.partial(torch.ones, device=DEVICE)


def line_of(program: Callable[..., object], mark: str) -> str:
    """Returns the line of a function that has a comment, as a report names it."""
    lines, first = inspect.getsourcelines(program)
    (offset,) = (i for i, line in enumerate(lines) if f"# {mark}" in line)
    return f"{inspect.getsourcefile(program)}:{first + offset}: {lines[offset].strip()}"


def read_after_write(main: torch.Stream, side: torch.Stream) -> None:
    x = new(7)  # first
    with side:
        x + 1  # second


def use_by_another_stream(main: torch.Stream, side: torch.Stream) -> None:
    x = new(100)  # allocated
    side.wait_stream(main)
    with side:
        x.sum()  # first
    del x  # freed
    y = torch.empty(100, device=DEVICE)  # again
    y.zero_()  # second
