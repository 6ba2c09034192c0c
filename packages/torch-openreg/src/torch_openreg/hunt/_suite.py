# SPDX-License-Identifier: BSD-3-Clause
"""Runs the suite in a mode, in a separate process, and reads its record."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ._modes import Mode
from ._results import Failure, Run

_OUTPUT_LINES = 20  # of a run that ended early


class Suite:
    """A pytest command."""

    def __init__(self, arguments: Sequence[str], folder: Path) -> None:
        self._arguments = list(arguments)
        self._folder = folder

    def run(self, mode: Mode, seconds: float) -> Run:
        """Runs the suite; ends it after ``seconds``."""
        record = self._folder / f"{mode.name.replace(':', '-')}.jsonl"
        output = record.with_suffix(".txt")
        command = [
            *(sys.executable, "-m", "pytest"),
            *self._arguments,
            *mode.options,
            f"--openreg-record={record}",
        ]
        start = time.monotonic()
        timed_out = False
        with output.open("wb") as file:
            process = subprocess.Popen(
                command,
                env=os.environ | dict(mode.environment),
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                timed_out = True
            finally:
                _end(process)
        run = Run(mode, time.monotonic() - start, process.returncode)
        text = output.read_text(errors="replace").splitlines()
        run.output = "\n".join(text[-_OUTPUT_LINES:])
        lines = record.read_text().splitlines() if record.exists() else []
        self._read(run, lines, timed_out)
        for failure in run.failures.values():
            failure.command = self._command(mode, failure.test)
        return run

    def _read(self, run: Run, lines: Sequence[str], timed_out: bool) -> None:
        started: dict[str, None] = {}
        for line in lines:
            event = json.loads(line)
            test, outcome = event["test"], event["outcome"]
            if outcome == "started":
                started[test] = None
            elif outcome == "finished":
                started.pop(test, None)
            else:
                run.tests.setdefault(test, outcome)
            if outcome == "failed":
                run.tests[test] = "failed"
                if event["out_of_memory"] and run.mode.fails_allocations:
                    run.expected.add(test)
                elif test not in run.failures:
                    run.failures[test] = Failure(test, event["message"])
        if run.status < 0 or timed_out:
            reason = (
                f"did not end within {run.seconds:.0f} s"
                if timed_out
                else f"ended the process: {_signal_name(-run.status)}"
            )
            for test in started or {"the whole run": None}:
                run.tests[test] = "failed"
                run.failures[test] = Failure(test, reason)

    def _command(self, mode: Mode, test: str) -> str:
        variables = [f"{name}={value}" for name, value in mode.environment.items()]
        ours = [each for each in self._arguments if each.startswith("--openreg-")]
        words = ["python", "-m", "pytest", test, *ours, *mode.options]
        return " ".join([*variables, *map(shlex.quote, words)])


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends the process and its children, which are in one process group."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
