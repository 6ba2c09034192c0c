# SPDX-License-Identifier: BSD-3-Clause
"""Building blocks for the programs of these tests."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable

import pytest
import torch
from torch.openreg import sanitizer
from torch.openreg.sanitizer import UnsynchronizedAccessError, UseAfterFreeError

Access = Callable[[torch.Stream, torch.Stream], object]
DEVICE = "openreg:0"
new = functools.partial(torch.ones, device=DEVICE)


def line_of(program: Callable[..., object], mark: str) -> str:
    """Returns the line of a function that has a comment, as a report names it."""
    lines, first = inspect.getsourcelines(program)
    (offset,) = (i for i, line in enumerate(lines) if f"# {mark}" in line)
    return f"{inspect.getsourcefile(program)}:{first + offset}: {lines[offset].strip()}"


def race_of(
    program: Access, main: torch.Stream, side: torch.Stream
) -> UnsynchronizedAccessError:
    """Returns the report of a race, which names the lines of both uses."""
    with pytest.raises(UnsynchronizedAccessError) as found, sanitizer.enabled():
        program(main, side)
    error = found.value
    assert not isinstance(error, UseAfterFreeError)
    assert error.previous.line == line_of(program, "first")
    assert error.current.line == line_of(program, "second")
    return error


def use_after_free_of(
    program: Access, main: torch.Stream, side: torch.Stream
) -> UseAfterFreeError:
    """Returns the report of a use after free, which names the lines of the memory."""
    with pytest.raises(UseAfterFreeError) as found, sanitizer.enabled():
        program(main, side)
    error = found.value
    assert error.previous.line == line_of(program, "first")
    assert error.current.line == line_of(program, "second")
    assert error.previously_allocated == line_of(program, "allocated")
    assert error.freed == line_of(program, "freed")
    assert error.allocated == line_of(program, "again")
    return error


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
