# SPDX-License-Identifier: BSD-3-Clause
"""Counts the checks on a device and keeps the failures."""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

from . import drawing
from .comparison import Likeness, Tolerances, compare, describe

# Checks of values, and other checks.
VALUE_CHECKS = ["forward", "backward", "in-place", "out=", "tangent"]
CHECKS = [*VALUE_CHECKS, "error", "version", "fake"]
SEED = 0
REDRAWN = 6  # the most results per test whose distributions are compared


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Ignores warnings, because deprecated operators are checked, too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@dataclasses.dataclass(frozen=True)
class Attempt:
    """The outcome of a call: a value or an exception."""

    value: Any = None
    error: Exception | None = None


def attempt(function: Callable[[], Any]) -> Attempt:
    """Calls a function after setting a fixed seed on all devices."""
    torch.manual_seed(SEED)
    with quiet():
        try:
            return Attempt(value=function())
        except Exception as error:
            return Attempt(error=error)


def lacks_dtype(error: Exception | None) -> bool:
    """Returns whether an exception reports that the CPU has no kernel for a dtype."""
    return isinstance(error, NotImplementedError) and "not implemented for" in str(
        error
    )


@dataclasses.dataclass(frozen=True)
class Call:
    """A checked call, from which a program can be written.

    Attributes:
        kind: ``""``, ``"in-place"`` or ``"out="``.
        op: The entry of PyTorch's database.
        arguments: Positional and named arguments, on the CPU.
    """

    kind: str
    op: Any
    arguments: tuple[tuple[Any, ...], dict[str, Any]]


@dataclasses.dataclass
class Tally:
    """The checks of one test.

    Attributes:
        device: The type of the device, such as ``"cuda"``.
        only: The enabled checks; None for all.
        own_numbers: Whether the device may draw different random numbers than the CPU.
        tolerances: The tolerances of the operator in PyTorch's database.
        counts: For each check, the numbers of passed, made, and bitwise equal checks.
        failures: The failed checks with messages.
        inexact: The passed checks without bitwise equality, with messages.
        call: The present call.
        failed_call: The call of the first failed check.
        inexact_call: The call of the first result without bitwise equality.
        redrawn: The number of results whose distributions were compared.
    """

    device: str
    only: frozenset[str] | None = None
    own_numbers: bool = False
    tolerances: Tolerances = dataclasses.field(default_factory=dict)
    counts: dict[str, list[int]] = dataclasses.field(
        default_factory=lambda: {check: [0, 0, 0] for check in CHECKS}
    )
    failures: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    inexact: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    call: Call | None = None
    failed_call: Call | None = None
    inexact_call: Call | None = None
    redrawn: int = 0

    def wants(self, check: str) -> bool:
        """Returns whether a check is enabled."""
        return self.only is None or check in self.only

    def compare(
        self,
        check: str,
        label: str,
        mine: Attempt,
        expected: Attempt,
        *,
        values: bool = True,
        redraw: drawing.Redraw | None = None,
    ) -> bool:
        """Counts a check: equal results or the same exception type.

        An asynchronous device may report the exception of a kernel later, as a
        ``torch.AcceleratorError``.

        Args:
            check: One of ``CHECKS``.
            label: The name of the check, for failure messages.
            mine: The outcome on the device.
            expected: The outcome on the CPU.
            values: Whether values are defined, in addition to metadata.
            redraw: Creates the result on a device again; called if values differ.

        Returns:
            Whether both outcomes are values that agree.
        """
        likeness, message = Likeness.SAME, ""
        if mine.error is None and lacks_dtype(expected.error):
            return False  # the device may support more dtypes than the CPU
        if expected.error is not None or mine.error is not None:
            late = expected.error and isinstance(mine.error, torch.AcceleratorError)
            if type(mine.error) is not type(expected.error) and not late:
                likeness = Likeness.DIFFERENT
                outcomes = [
                    describe(each.error) if each.error else "no error"
                    for each in (mine, expected)
                ]
                message = f"{outcomes[0]} (on the CPU: {outcomes[1]})"
        else:
            likeness, message = self._likeness(mine.value, expected.value, values)
            may = likeness == Likeness.DIFFERENT and self.own_numbers
            if may and redraw is not None and drawing.draws(redraw):
                likeness, message = self._likeness(mine.value, expected.value, False)
                if likeness == Likeness.SAME:
                    likeness, message = self._numbers(redraw)
        self._count(check, label, likeness, message)
        return mine.error is None and likeness != Likeness.DIFFERENT

    def _likeness(self, mine: Any, expected: Any, values: bool) -> tuple[Likeness, str]:
        try:
            with quiet():
                found = compare(
                    mine,
                    expected,
                    self.device,
                    values=values,
                    tolerances=self.tolerances,
                )
        except Exception as error:
            told = " ".join(str(error).split())[:300] or describe(error)
            return Likeness.DIFFERENT, told
        return found, ""

    def _numbers(self, redraw: drawing.Redraw) -> tuple[Likeness, str]:
        """Returns the agreement of random numbers that differ from the CPU's."""
        self.redrawn += 1
        problem = None
        if self.redrawn <= REDRAWN:
            with quiet():
                problem = drawing.difference(redraw, self.device)
        if problem is not None:
            return Likeness.DIFFERENT, problem
        return Likeness.CLOSE, "other random numbers"

    def note(self, check: str, label: str, problem: str | None) -> None:
        """Counts a check, which has failed if there is a problem."""
        likeness = Likeness.SAME if problem is None else Likeness.DIFFERENT
        self._count(check, label, likeness, problem or "")

    def _count(self, check: str, label: str, likeness: Likeness, message: str) -> None:
        if not self.wants(check):
            return
        count = self.counts[check]
        count[0] += likeness != Likeness.DIFFERENT
        count[1] += 1
        count[2] += likeness == Likeness.SAME
        if likeness == Likeness.DIFFERENT:
            if not self.failures:
                self.failed_call = self.call
            self.failures.append((check, f"{label}: {message}"))
        elif likeness == Likeness.CLOSE:
            if not self.inexact:
                self.inexact_call = self.call
            told = message or "not bitwise equal to the CPU"
            self.inexact.append((check, f"{label}: {told}"))
