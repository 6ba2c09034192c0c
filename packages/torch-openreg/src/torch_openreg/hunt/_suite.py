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
from ._results import WHOLE_RUN, Failure, Run

_OUTPUT_LINES = 20  # of a run that ended early
_TESTS_RAN = (0, 1)  # statuses of pytest: all passed, or some failed
# Options of pytest that choose tests, and other options with a separate value.
_CHOOSES = ("-k", "-m")
_HAS_VALUE = ("-c", "-n", "-o", "-p", "-W", "--rootdir", "--confcutdir", "--basetemp")


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
        ended = False
        for line in lines:
            event = json.loads(line)
            test, outcome = event["test"], event["outcome"]
            if outcome == "ended":
                ended = True
            elif outcome == "started":
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
        if timed_out:
            reason = f"did not end within {run.seconds:.0f} s"
        elif run.status < 0:
            reason = f"ended the process: {_signal_name(-run.status)}"
        elif started and not ended:
            reason = f"ended the process with status {run.status}"
        elif run.status in _TESTS_RAN or run.failures:
            return
        else:
            last = run.output.rpartition("\n")[2]
            reason = f"pytest ended with status {run.status}: {last}"
        for test in started or {WHOLE_RUN: None}:
            run.tests[test] = "failed"
            run.failures[test] = Failure(test, reason)

    def _command(self, mode: Mode, test: str) -> str:
        variables = [f"{name}={value}" for name, value in mode.environment.items()]
        chosen = self._arguments
        if test != WHOLE_RUN:
            chosen = [test, *_without_choice(self._arguments)]
        words = ["python", "-m", "pytest", *chosen, *mode.options]
        return " ".join([*variables, *map(shlex.quote, words)])


def _without_choice(arguments: Sequence[str]) -> list[str]:
    """Returns the arguments of pytest without the choice of tests."""
    kept: list[str] = []
    words = iter(arguments)
    for word in words:
        if word in _CHOOSES:
            next(words, None)
        elif word in _HAS_VALUE:
            kept += [word, *([value] if (value := next(words, "")) else [])]
        elif not word.startswith(_CHOOSES) and not _is_path(word):
            kept.append(word)
    return kept


def _is_path(word: str) -> bool:
    return not word.startswith("-") and Path(word.partition("::")[0]).exists()


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
