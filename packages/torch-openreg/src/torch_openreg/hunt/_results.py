# SPDX-License-Identifier: BSD-3-Clause
"""The results of ``hunt``: runs, findings and their table."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from typing import Any

from ._modes import Mode

WHOLE_RUN = "the whole run"  # in place of a test
_FIRST_TIMEOUT = 3600  # seconds, for the plain run
_MESSAGE = 100  # characters in the table


@dataclass
class Failure:
    """A test that failed in a mode.

    Attributes:
        test: Its node ID, or WHOLE_RUN.
        message: The first line of its error.
        command: The command that repeats it.
    """

    test: str
    message: str
    command: str = ""


@dataclass
class Run:
    """The suite in one mode.

    Attributes:
        mode: The mode.
        seconds: The time that it took.
        status: The exit status of pytest; negative for a signal.
        tests: The outcome of each test by its node ID.
        failures: The unexpected failures by node ID.
        expected: Tests that reported an injected failure as they should.
        output: The last lines that pytest printed.
    """

    mode: Mode
    seconds: float
    status: int
    tests: dict[str, str] = field(default_factory=dict)
    failures: dict[str, Failure] = field(default_factory=dict)
    expected: set[str] = field(default_factory=set)
    output: str = ""

    def summary(self) -> str:
        """One line for the user who waits."""
        return (
            f"{len(self.tests)} tests, {len(self.failures)} failed, "
            f"{self.seconds:.1f} s"
        )


@dataclass
class Finding:
    """A test that fails in at least one mode, but not in a plain run."""

    test: str
    failures: list[tuple[Mode, Failure]]


@dataclass
class Hunt:
    """All runs of a suite."""

    arguments: list[str]
    runs: list[Run] = field(default_factory=list)

    def default_timeout(self) -> float:
        """Seconds for the next run: many times as long as the plain run."""
        return 60 + 10 * self.runs[0].seconds if self.runs else _FIRST_TIMEOUT

    def plain_failures(self) -> list[Failure]:
        """Tests that fail without any mode."""
        plain = [run for run in self.runs if run.mode.is_plain]
        return [each for run in plain for each in run.failures.values()]

    def findings(self) -> list[Finding]:
        """Tests that fail only in other modes, in the order of the first failure."""
        known = {failure.test for failure in self.plain_failures()}
        found: dict[str, Finding] = {}
        for run in self.runs:
            for test, failure in run.failures.items():
                if test not in known:
                    finding = found.setdefault(test, Finding(test, []))
                    finding.failures.append((run.mode, failure))
        return list(found.values())

    def cell(self, run: Run, test: str) -> str:
        """The outcome of a test in a run, for tables."""
        if test in run.failures:
            return "FAIL"
        if test in run.expected:
            return "memory"
        return {"passed": "ok", "skipped": "skip"}.get(run.tests.get(test, ""), "-")

    def table(self) -> str:
        """The findings as text, each with the command that repeats it."""
        lines = []
        for failure in self.plain_failures():
            lines += [f"{failure.test} fails in a plain run: {failure.message}"]
        findings = self.findings()
        if findings:
            lines += _grid(self, findings)
        for finding in findings:
            mode, failure = finding.failures[0]
            lines += [
                "",
                f"{finding.test}: first in mode {mode.name} ({mode.finds})",
                "  " + textwrap.shorten(failure.message, _MESSAGE, placeholder=" ..."),
                "  repeat: " + failure.command,
            ]
        lines += ["", self._last_line(len(findings))]
        return "\n".join(lines).lstrip("\n")

    def _last_line(self, findings: int) -> str:
        tests = len(self.runs[0].tests) if self.runs else 0
        seconds = sum(run.seconds for run in self.runs)
        return (
            f"{tests} tests in {len(self.runs)} modes, {seconds:.0f} s: "
            f"{findings} tests fail only in a mode, "
            f"{len(self.plain_failures())} in a plain run"
        )

    def as_json(self) -> dict[str, Any]:
        """All results, for a file."""
        return {
            "arguments": self.arguments,
            "runs": [
                {
                    "mode": run.mode.name,
                    "environment": dict(run.mode.environment),
                    "options": list(run.mode.options),
                    "seconds": round(run.seconds, 3),
                    "status": run.status,
                    "tests": run.tests,
                    "expected": sorted(run.expected),
                }
                for run in self.runs
            ],
            "plain_failures": [vars(failure) for failure in self.plain_failures()],
            "findings": [
                {
                    "test": finding.test,
                    "failures": [
                        {
                            "mode": mode.name,
                            "message": failure.message,
                            "command": failure.command,
                        }
                        for mode, failure in finding.failures
                    ],
                }
                for finding in self.findings()
            ],
        }


def _grid(hunt: Hunt, findings: list[Finding]) -> list[str]:
    """A row per finding, a column per mode."""
    names = [run.mode.name for run in hunt.runs]
    rows = [
        [finding.test, *(hunt.cell(run, finding.test) for run in hunt.runs)]
        for finding in findings
    ]
    rows.insert(0, ["test", *names])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
