# SPDX-License-Identifier: BSD-3-Clause
"""Known failures: a TOML file with case names and reasons.

[[expected]]
cases = ["operators/linalg.lstsq/*", "modules/nn.LSTM/float64/train"]
reason = "The driver of lstsq reads pivots that PyTorch has not set."
check = "bits"  # only failures of this check; of all by default
strict = false  # it may pass as well
"""

from __future__ import annotations

import dataclasses
import fnmatch
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

BAD = ("failed", "crashed", "hung", "blocked")


class ExpectationError(ValueError):
    """An error in a file of expectations."""


@dataclasses.dataclass(frozen=True)
class Expectation:
    """Cases that are known to fail.

    Attributes:
        cases: Their names, with wildcards.
        reason: Why they fail.
        strict: Whether each of them must fail, so that the file stays true.
        check: The check that fails, such as ``"forward"``; any check if it is empty.
    """

    cases: tuple[str, ...]
    reason: str
    strict: bool = True
    check: str = ""

    def names(self, case: str) -> bool:
        """Returns whether the expectation names a case."""
        return any(fnmatch.fnmatchcase(case, pattern) for pattern in self.cases)

    def explains(self, case: dict[str, Any]) -> bool:
        """Returns whether a bad result is the known one."""
        return self.names(case["name"]) and self.check in ("", case.get("check"))


def read(path: Path) -> list[Expectation]:
    """Reads a file of expectations.

    Raises:
        ExpectationError: If it is missing or invalid.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ExpectationError(f"{path}: {error}") from error
    unknown = set(content) - {"expected", "run"}
    if unknown:
        raise ExpectationError(
            f"{path}: unknown key {sorted(unknown)[0]}, expected [[expected]]"
        )
    entries = content.get("expected", [])
    if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
        raise ExpectationError(
            f"{path}: 'expected' must be an array of tables [[expected]]"
        )
    return [
        _expectation(f"{path}: entry {i}", entry) for i, entry in enumerate(entries, 1)
    ]


def _expectation(where: str, entry: dict[str, Any]) -> Expectation:
    unknown = set(entry) - {"cases", "reason", "strict", "check"}
    if unknown:
        raise ExpectationError(
            f"{where} has {sorted(unknown)[0]}; it may have cases, reason, strict and "
            "check"
        )
    cases, reason = entry.get("cases"), entry.get("reason")
    listed = isinstance(cases, list) and all(isinstance(c, str) for c in cases)
    if not listed or not cases:
        raise ExpectationError(f"{where}: cases is {cases!r}, not a list of names")
    if not isinstance(reason, str) or not reason.strip():
        raise ExpectationError(f"{where} has no reason")
    strict = entry.get("strict", True)
    if not isinstance(strict, bool):
        raise ExpectationError(f"{where}: strict is {strict!r}, not true or false")
    check = entry.get("check", "")
    if not isinstance(check, str):
        raise ExpectationError(f"{where}: check is {check!r}, not a name")
    return Expectation(tuple(cases), reason, strict, check)


def apply(report: dict[str, Any], expectations: Sequence[Expectation]) -> None:
    """Marks the cases of a report that fail as expected, with the reason.

    Passed cases that a strict expectation names are marked, too.
    """
    for case in report["cases"]:
        mark(case, expectations)


def mark(case: dict[str, Any], expectations: Sequence[Expectation]) -> None:
    """Marks one case."""
    for each in expectations:
        if case["outcome"] in BAD and each.explains(case):
            case["expected"] = each.reason
            return
        if case["outcome"] == "passed" and each.strict and each.names(case["name"]):
            case["unexpected_pass"] = each.reason
            return


def surprises(report: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the unexpected failures and the unexpected passes."""
    return [case for case in report["cases"] if is_failure(case)]


def is_failure(case: dict[str, Any]) -> bool:
    """Returns whether a marked case fails, or passes, unexpectedly."""
    return "unexpected_pass" in case or (
        case["outcome"] in BAD and "expected" not in case
    )


def is_skipped(case: dict[str, Any]) -> bool:
    """Returns whether a marked case does not apply, or fails as expected."""
    return case["outcome"] == "skipped" or "expected" in case
