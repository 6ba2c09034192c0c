# SPDX-License-Identifier: BSD-3-Clause
"""The report of a run for a terminal."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from typing import Any

from .expectations import surprises
from .ranking import Finding, rank, score, scores
from .texts import explain

ADVICES = 5


def percent(share: float | None) -> str:
    """Formats a share; never 100 % for less than all."""
    if share is None:
        return "-"
    text = f"{share:.1%}"
    return "99.9%" if text == "100.0%" and share < 1 else text


def bits(report: dict[str, Any]) -> tuple[int, int]:
    """Returns the numbers of bitwise equal and of passed value checks."""
    compared = [each for each in report["cases"] if "same_bits" in each]
    return sum(c["same_bits"] for c in compared), sum(c["passed"] for c in compared)


def lines(report: dict[str, Any], advices: int = ADVICES) -> Iterator[str]:
    """Returns the lines of the summary.

    Args:
        report: The report of a run, with expectations applied.
        advices: The number of findings to show.
    """
    yield (
        f"{report['device']} ({report['device_name']}), level {report['level']}, "
        f"torch {report['torch']}, {report['seconds']:.0f} s"
    )
    yield ""
    columns = ("passed", "failed", "crashed", "hung", "blocked", "skipped")
    head = "".join(f"{each:>9}" for each in columns)
    yield f"{'suite':16}{'score':>7}{head}"
    total: collections.Counter[str] = collections.Counter()
    for name, counts in scores(report, "suite").items():
        yield _row(name, counts, columns)
        total.update(counts)
    yield _row("all", total, columns)
    same, passed = bits(report)
    if passed:
        yield f"bit-equal to the CPU: {same} of {passed} checks of values that passed"
    reasons = collections.Counter(
        case["message"] for case in report["cases"] if case["outcome"] == "skipped"
    )
    for reason, count in reasons.most_common():
        yield f"skipped {count}: {reason}"
    if total["expected"]:
        yield f"{total['expected']} failures are expected"
    for case in report["cases"]:
        if "unexpected_pass" in case:
            yield f"passes, but is expected to fail: {case['name']}"
    findings = rank(report)
    if not findings:
        unexpected = len(surprises(report))
        yield "" if unexpected else "nothing to fix"
        return
    yield ""
    yield f"Recommended fixes ({len(findings)} findings, most users first):"
    for i, finding in enumerate(findings[:advices], 1):
        yield from _advice(i, finding)


def _row(name: str, counts: dict[str, int], columns: tuple[str, ...]) -> str:
    cells = "".join(f"{counts.get(each, 0) or '.':>9}" for each in columns)
    return f"{name:16}{percent(score(counts)):>7}{cells}"


def _advice(number: int, finding: Finding) -> Iterator[str]:
    case = finding.cases[0]
    doubt = " (may follow from what is above)" if finding.doubtful else ""
    yield f"{number}. {finding.title}{doubt}"
    yield (
        f"   needed by {finding.users:.0%} of programs, "
        f"{finding.count}, such as {case['name']}: {case['title']}"
    )
    yield f"   {case['outcome']}: {case['message'].splitlines()[0][:200]}"
    known = explain(case["message"])
    if known is not None:
        yield f"   this text means that {known[0]} is missing: {known[1]}"
    yield f"   read {finding.page} in the guide of torch-openreg"
