# SPDX-License-Identifier: BSD-3-Clause
"""Runs planted bugs and corrected programs in modes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.openreg import sanitizer
from torch.openreg.sanitizer import UnsynchronizedAccessError

from torch_openreg.testing import schedule

from .programs import Bug

MODES = ("eager", "lazy", "random", "sanitizer")


@contextmanager
def mode_of(name: str, attempt: int) -> Iterator[None]:
    """Runs a block in a mode."""
    if name == "sanitizer":
        with sanitizer.enabled():
            yield
    else:
        with schedule(f"random:{attempt}" if name == "random" else name):
            yield


def shows(bug: Bug, right: bool, name: str, attempt: int) -> bool:
    """Whether a run of a program fails."""
    expected = bug.program(True)
    torch.accelerator.synchronize()
    try:
        with mode_of(name, attempt):
            return bug.program(right) != expected
    except UnsynchronizedAccessError:
        return True
    finally:
        torch.accelerator.synchronize(0)
        torch.accelerator.synchronize(1)


def attempt_that_finds(bug: Bug, name: str, attempts: int) -> int:
    """The first attempt that shows the bug, from 1; or 0."""
    for attempt in range(attempts if name in ("random", "eager") else 1):
        if shows(bug, False, name, attempt):
            return attempt + 1
    return 0


def false_alarms(bug: Bug, name: str, attempts: int) -> int:
    """How often the correct program fails."""
    runs = attempts if name == "random" else 1
    return sum(shows(bug, True, name, attempt) for attempt in range(runs))
