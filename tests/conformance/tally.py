# SPDX-License-Identifier: BSD-3-Clause
"""Counts what was checked, and turns the counts of all tests into a report."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from .comparison import Likeness, compare, describe
from .expected_failures import is_expected_to_fail, rounding_reason

# Checks that compare values, and those that compare something else.
VALUE_CHECKS = ["forward", "backward", "in-place", "out=", "tangent"]
CHECKS = [*VALUE_CHECKS, "error", "version", "fake", "first call"]


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Lets operators warn: what PyTorch deprecates is checked as well."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@dataclasses.dataclass(frozen=True)
class Attempt:
    """What a call gave: a value, or the exception that it raised."""

    value: Any = None
    error: Exception | None = None


def attempt(function: Callable[[], Any]) -> Attempt:
    """Calls a function with the random numbers of a fixed seed on every device."""
    torch.manual_seed(0)
    with quiet():
        try:
            return Attempt(value=function())
        except Exception as error:
            return Attempt(error=error)


def lacks_dtype(error: Exception | None) -> bool:
    """Whether an exception says that the CPU has no kernel for a dtype."""
    return isinstance(error, NotImplementedError) and "not implemented for" in str(
        error
    )


@dataclasses.dataclass
class Tally:
    """The checks of one test."""

    counts: dict[str, list[int]] = dataclasses.field(
        default_factory=lambda: {check: [0, 0, 0] for check in CHECKS}
    )
    failures: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    inexact: set[str] = dataclasses.field(default_factory=set)

    def compare(
        self,
        check: str,
        label: str,
        mine: Attempt,
        expected: Attempt,
        *,
        values: bool = True,
    ) -> bool:
        """Counts one check: the same results, or the same type of exception.

        Args:
            check: One of ``CHECKS``.
            label: What was checked, for the message of a failure.
            mine: What openreg gave.
            expected: What the CPU gave.
            values: Whether values are defined, and not only what describes them.

        Returns:
            Whether both have a value, and the values agree.
        """
        likeness, message = Likeness.SAME, ""
        if mine.error is None and lacks_dtype(expected.error):
            return False  # test_wider_dtypes.py compares what the device makes
        if expected.error is not None or mine.error is not None:
            if type(mine.error) is not type(expected.error):
                likeness = Likeness.DIFFERENT
                outcomes = [
                    describe(each.error) if each.error else "no error"
                    for each in (mine, expected)
                ]
                message = f"{outcomes[0]} (on the CPU: {outcomes[1]})"
        else:
            try:
                with quiet():
                    likeness = compare(mine.value, expected.value, values=values)
            except Exception as error:
                likeness = Likeness.DIFFERENT
                message = " ".join(str(error).split())[:300] or describe(error)
        self._count(check, label, likeness, message)
        return mine.error is None and likeness != Likeness.DIFFERENT

    def note(self, check: str, label: str, problem: str | None) -> None:
        """Counts one check, which has failed if there is a problem to tell."""
        likeness = Likeness.SAME if problem is None else Likeness.DIFFERENT
        self._count(check, label, likeness, problem or "")

    def checks(self) -> set[str]:
        """The checks that were made."""
        return {check for check, count in self.counts.items() if count[1]}

    def _count(self, check: str, label: str, likeness: Likeness, message: str) -> None:
        count = self.counts[check]
        count[0] += likeness != Likeness.DIFFERENT
        count[1] += 1
        count[2] += likeness == Likeness.SAME
        if likeness == Likeness.DIFFERENT:
            self.failures.append((check, f"{label}: {message}"))
        elif likeness == Likeness.CLOSE:
            self.inexact.add(check)

    def plain(self) -> dict[str, Any]:
        """Returns the counts as plain values, for the report of a test."""
        return {"counts": self.counts, "inexact": sorted(self.inexact)}


def report(tallies: Iterable[tuple[str, dict[str, Any]]]) -> Iterator[str]:
    """Gives the lines of the report on all tests.

    Args:
        tallies: The name of each test, with the fields of its tally.
    """
    totals = {check: [0, 0, 0] for check in CHECKS}
    expected: collections.Counter[str] = collections.Counter()
    inexact: dict[str, set[str]] = collections.defaultdict(set)
    for name, tally in tallies:
        for check, counts in tally["counts"].items():
            totals[check] = [a + b for a, b in zip(totals[check], counts, strict=True)]
            if is_expected_to_fail(name, check):
                expected[check] += counts[1] - counts[0]
        for check in tally["inexact"]:
            inexact[name].add(check)
    for check, (passed, count, _) in totals.items():
        if count == 0:
            continue
        others = count - expected[check]
        share = passed / others if others else 1.0
        line = f"{check:10} {passed}/{others} ({share:.2%})"
        yield line + f", {expected[check]} expected to fail" * bool(expected[check])
    values = [totals[check] for check in VALUE_CHECKS]
    passed, exact = (sum(each[i] for each in values) for i in (0, 2))
    if passed:
        yield f"{'same bits':10} {exact}/{passed} ({exact / passed:.3%})"
    for name, checks in sorted(inexact.items()):
        reason = rounding_reason(name) or "no reason is known"
        yield f"  equal up to rounding: {name} ({', '.join(sorted(checks))}): {reason}"
