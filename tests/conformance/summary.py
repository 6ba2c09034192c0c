# SPDX-License-Identifier: BSD-3-Clause
"""Turns the counts of all tests of this folder into a report."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Iterator
from typing import Any

from openreg_conformance.checks.tally import CHECKS, VALUE_CHECKS

from .expected_failures import is_expected_to_fail, rounding_reason


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
