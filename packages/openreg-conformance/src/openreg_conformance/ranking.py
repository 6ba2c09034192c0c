# SPDX-License-Identifier: BSD-3-Clause
"""What to fix next: failures that have one cause are one finding, the widest first.

A finding is a mechanism, and where it can be said an operator. Failures with the same
text of PyTorch about a kernel that is missing are one finding, whatever the suite. If
many operators fail in the same way, the way is the finding and not the operators. The
order is by the share of users that need the worst of its cases; what stands on another
mechanism that fails comes after that one, since it may be a consequence.
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

# So many operators, and this share of those that were tried, are no coincidence.
_MANY, _SHARE = 6, 0.15
_MISSING = re.compile(r"Could not run '(aten::[\w.]+)'")
_UNIMPLEMENTED = re.compile(r"(aten::[\w.]+|\w+_overrideable)\b[^.]*not (?:yet )?impl")
MANY = "many operators"
_SEVERITY = {"crashed": 0.03, "hung": 0.02}


@dataclasses.dataclass
class Finding:
    """Failures that seem to have one cause.

    Attributes:
        mechanism: A key of ``MECHANISMS``.
        subject: What is at fault more closely; may be empty.
        cases: What failed, the one that most users need first.
        users: The share of users that need it.
        depth: What the mechanism stands on.
        doubtful: Whether the cause may be a finding that comes before it.
    """

    mechanism: str
    subject: str
    cases: list[dict[str, Any]]
    users: float = 0.0
    depth: int = 0
    doubtful: bool = False

    @property
    def title(self) -> str:
        """What to fix, in a few words."""
        title = MECHANISMS[self.mechanism].title
        return f"{title}: {self.subject}" if self.subject else title

    @property
    def count(self) -> str:
        """How many cases fail, in words."""
        return f"{len(self.cases)} case{'s' * (len(self.cases) > 1)}"

    @property
    def page(self) -> str:
        """The page of the guide about it."""
        return MECHANISMS[self.mechanism].page


def missing_kernel(case: dict[str, Any]) -> str | None:
    """The operator of ATen that a case's message says has no kernel, if it does."""
    message = case.get("message", "")
    found = _MISSING.search(message) or _UNIMPLEMENTED.search(message)
    return found[1] if found else None


def rank(report: dict[str, Any]) -> list[Finding]:
    """Groups the failures of a report, and puts what concerns most users first."""
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
    """Whether operators give wrong values, of which gradients consist."""
    return any(
        each.mechanism in _VALUES and each.cases[0]["name"].startswith("operators/")
        for each in findings
    )


def _calls_one(finding: Finding, calls: list[str]) -> bool:
    """Whether programs of a suite fail that call operators which fail by themselves."""
    if finding.cases[0]["name"].startswith("operators/"):
        return False
    return all(
        any(re.search(call, case.get("program", "")) for call in calls)
        for case in finding.cases
    )


# How programs write operators.
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
    """The mechanisms in which many operators of the database fail."""
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


# Names of the guide's mechanisms that are parts of ours.
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
        key: ``"suite"`` or ``"mechanism"``: what the counts are by.
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
    """The share that passed of what was not skipped; None if all was."""
    judged = counts["all"] - counts["skipped"]
    return counts["passed"] / judged if judged else None
