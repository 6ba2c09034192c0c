# SPDX-License-Identifier: BSD-3-Clause
"""Groups failures by cause, and ranks the findings by users.

A finding is a mechanism and, if known, an operator. Failures with the same PyTorch text
about a missing kernel are one finding in all suites. If many operators fail in the same
way, that way is the finding, not the operators. Findings are ordered by the share of
users that need their most used case. A mechanism that depends on another failed
mechanism comes after it, because it may be a consequence.
"""

from __future__ import annotations

import collections
import dataclasses
import re
from collections.abc import Iterable
from typing import Any

from .expectations import BAD
from .mechanisms import FOUNDATION, MECHANISMS, PROGRAMS
from .suites import FOUNDATIONS
from .texts import explain

# From this count and share of the tried operators on, failures are not a coincidence.
_MANY, _SHARE = 6, 0.15
_MISSING = re.compile(r"Could not run '(aten::[\w.]+)'")
_UNIMPLEMENTED = re.compile(r"(aten::[\w.]+|\w+_overrideable)\b[^.]*not (?:yet )?impl")
MANY = "many operators"
_SEVERITY = {"crashed": 0.03, "hung": 0.02}


@dataclasses.dataclass
class Finding:
    """Failures with a probable common cause.

    Attributes:
        mechanism: A key of ``MECHANISMS``.
        subject: A more specific part at fault; may be empty.
        cases: The failed cases; the most used comes first.
        users: The share of users that need it.
        depth: The depth of the mechanism.
        doubtful: Whether the cause may be an earlier finding.
    """

    mechanism: str
    subject: str
    cases: list[dict[str, Any]]
    users: float = 0.0
    depth: int = 0
    doubtful: bool = False

    @property
    def title(self) -> str:
        """The title of the finding."""
        title = MECHANISMS[self.mechanism].title
        return f"{title}: {self.subject}" if self.subject else title

    @property
    def count(self) -> str:
        """The number of failed cases, as text."""
        return f"{len(self.cases)} case{'s' * (len(self.cases) > 1)}"

    @property
    def page(self) -> str:
        """The guide's page about it."""
        return MECHANISMS[self.mechanism].page


def missing_kernel(case: dict[str, Any]) -> str | None:
    """Returns the operator without a kernel that a case's message names, if any."""
    message = case.get("message", "")
    found = _MISSING.search(message) or _UNIMPLEMENTED.search(message)
    return found[1] if found else None


def rank(report: dict[str, Any]) -> list[Finding]:
    """Groups the failures of a report; findings with most users come first."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = collections.defaultdict(list)
    wide = set(_wide(report["cases"]))
    for case in report["cases"]:
        if case["outcome"] not in BAD or case["outcome"] == "blocked":
            continue
        if "expected" in case:
            continue
        groups[_group(case, wide)].append(case)
    findings = [_finding(*key, cases) for key, cases in groups.items()]
    lowest = min((each.depth for each in findings), default=PROGRAMS)
    broken = {each.subject for each in findings if each.mechanism in _VALUES}
    calls = [
        _SYMBOLS.get(each.subject, rf"\b{re.escape(each.subject.split('.')[-1])}\(")
        for each in findings
        if each.cases[0]["name"].startswith("operators/") and each.subject != MANY
    ]
    wrong_values = _has_operators(findings)
    no_foundation = any(
        case["name"] in FOUNDATIONS for each in findings for case in each.cases
    )
    for each in findings:
        each.doubtful = not each.subject.endswith(" is missing") and (
            (each.depth == PROGRAMS and lowest < PROGRAMS)
            or _calls_one(each, calls)
            or (each.depth > FOUNDATION and no_foundation)
            or (each.mechanism in _DERIVED and each.subject in broken)
            or (each.mechanism == "gradients" and wrong_values)
        )
    findings.sort(key=_order)
    return findings


def _has_operators(findings: list[Finding]) -> bool:
    """Returns whether operators give wrong values, which affects gradients."""
    return any(
        each.mechanism in _VALUES and each.cases[0]["name"].startswith("operators/")
        for each in findings
    )


def _calls_one(finding: Finding, calls: list[str]) -> bool:
    """Returns whether failed programs call an operator that fails by itself."""
    if finding.cases[0]["name"].startswith("operators/"):
        return False
    return all(
        any(re.search(call, case.get("program", "")) for call in calls)
        for case in finding.cases
    )


# The spelling of operators in programs.
_SYMBOLS = {
    "add": r" \+ |\+= |\badd_?\(",
    "mul": r" \* |\bmul_?\(",
    "mm": r" @ |\bmm\(",
    "matmul": r" @ ",
}
_VALUES = ("operators",)
_DERIVED = ("gradients", "in_place", "out", "forward_ad", "versions", "fake", "errors")


def _order(finding: Finding) -> tuple[Any, ...]:
    severity = max(_SEVERITY.get(each["outcome"], 0.0) for each in finding.cases)
    return (
        finding.doubtful,
        -(finding.users + severity),
        finding.depth,
        -len(finding.cases),
        finding.title,
    )


def _wide(cases: Iterable[dict[str, Any]]) -> Iterable[str]:
    """Returns the mechanisms in which many operators of the database fail."""
    tried: dict[str, set[str]] = collections.defaultdict(set)
    failed: dict[str, set[str]] = collections.defaultdict(set)
    for case in cases:
        if not case["name"].startswith("operators/"):
            continue
        if case["outcome"] in ("skipped", "blocked"):
            continue
        tried[case["mechanism"]].add(case["subject"])
        if case["outcome"] != "passed" and missing_kernel(case) is None:
            failed[case["mechanism"]].add(case["subject"])
    for mechanism, subjects in failed.items():
        share = len(subjects) / len(tried[mechanism])
        if len(subjects) >= _MANY and share >= _SHARE:
            yield mechanism


# Mechanisms of the guide that are parts of these mechanisms.
_PARTS = {
    "autoload": "name",
    "rename": "name",
    "device_interface": "dynamo",
    "dynamo_backend": "dynamo",
    "fake_tensor": "fake",
    "profiler_stubs": "profiler",
    "profiler_observer": "profiler",
}


def _group(case: dict[str, Any], wide: set[str]) -> tuple[str, str]:
    if case["mechanism"] == "sparse":
        return "sparse", case["subject"]
    known, missing = explain(case["message"]), missing_kernel(case)
    name = _PARTS.get(known[0], known[0]) if known else ""
    if known is not None and name in MECHANISMS:
        return name, f"{known[0]} is missing"
    if missing is not None:
        return "operators", f"{missing} has no kernel"
    if case["name"].startswith("operators/") and case["mechanism"] in wide:
        return case["mechanism"], MANY
    return case["mechanism"], case["subject"]


def _finding(mechanism: str, subject: str, cases: list[dict[str, Any]]) -> Finding:
    cases = sorted(cases, key=lambda each: (-each["users"], each["name"]))
    users = max(each["users"] for each in cases)
    if subject == MANY:
        users = max(users, MECHANISMS[mechanism].users)
    return Finding(mechanism, subject, cases, users, MECHANISMS[mechanism].depth)


def scores(report: dict[str, Any], key: str) -> dict[str, dict[str, int]]:
    """Counts outcomes.

    Args:
        report: Of a run.
        key: ``"suite"`` or ``"mechanism"``, the key of the counts.
    """
    found: dict[str, dict[str, int]] = {}
    for case in report["cases"]:
        name = case["name"].partition("/")[0] if key == "suite" else case[key]
        counts = found.setdefault(name, collections.Counter())
        counts[case["outcome"]] += 1
        counts["expected"] += "expected" in case
        counts["all"] += 1
    return found


def score(counts: dict[str, int]) -> float | None:
    """Returns the passed share of the cases that were not skipped, or None."""
    judged = counts["all"] - counts["skipped"]
    return counts["passed"] / judged if judged else None
