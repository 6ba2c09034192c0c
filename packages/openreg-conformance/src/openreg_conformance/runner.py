# SPDX-License-Identifier: BSD-3-Clause
"""Runs cases in worker processes, which may crash or hang, and keeps a journal.

This module does not import torch or the device. A worker gets one case at a time, so
that a crash is assigned to its case. A worker that does not answer in time prints its
stack and is killed, and another one continues with the next case. Each result is
written to the journal immediately, from which an interrupted run resumes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import fnmatch
import itertools
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from .case import LEVELS
from .loading import UnusableError, environment
from .suites import FOUNDATIONS, SUITES

START_LIMIT = 300.0  # seconds for a worker to import torch and its databases
CARRY_ON_LIMIT = 20.0  # seconds for a device to recover after a failure
STARTS = 3  # attempts to start a worker before the run is aborted
LONGEST = 86400.0  # the most seconds for a case

Result = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Settings:
    """The settings of a run.

    Attributes:
        device: The type of the device.
        level: One of ``LEVELS``.
        suites: Names of suites.
        imports: Modules and files to import after torch.
        patterns: Names of cases to run, with wildcards; all by default.
        workers: The number of worker processes.
        limit: Seconds for a case.
        exact: Whether to require bitwise equality and the CPU's random numbers.

    Raises:
        ValueError: If one of them is invalid.
    """

    device: str
    level: str = "smoke"
    suites: tuple[str, ...] = SUITES
    imports: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    workers: int = 1
    limit: float = 120.0
    exact: bool = False

    def __post_init__(self) -> None:
        """Checks the settings."""
        if not isinstance(self.device, str):
            raise ValueError(f"device is {self.device!r}, not the name of a type")
        if self.level not in LEVELS:
            raise ValueError(f"level is {self.level!r}; accepted: {_listed(LEVELS)}")
        for each in self.suites:
            if each not in SUITES:
                raise ValueError(f"suites has {each!r}; accepted: {_listed(SUITES)}")
        for name in ("imports", "patterns"):
            for each in getattr(self, name):
                if not isinstance(each, str):
                    raise ValueError(f"{name} has {each!r}, not a name")
        if self.workers < 1:
            raise ValueError(f"workers is {self.workers}; accepted: 1 or more")
        number = isinstance(self.limit, int | float)
        if not (number and 0 < self.limit <= LONGEST):  # nor NaN
            raise ValueError(
                f"timeout is {self.limit!r}; accepted: above 0, at most {LONGEST:g}"
            )
        if not isinstance(self.exact, bool):
            raise ValueError(f"exact is {self.exact!r}, not true or false")

    def key(self) -> dict[str, Any]:
        """The settings that a resumed run must share with the first one."""
        return {
            "device": self.device,
            "level": self.level,
            "suites": list(self.suites),
            "imports": list(self.imports),
            "patterns": list(self.patterns),
            "exact": self.exact,
        }


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)


class StoppedError(Exception):
    """Raised for a case that was abandoned because the run is stopped."""


class EndedError(Exception):
    """Raised with the reason when a worker has ended."""


class LateError(Exception):
    """Raised with the stack when a worker did not answer in time."""


class Worker:
    """A process that runs cases.

    Args:
        settings: The settings of the run.
        listing: Whether the worker lists the cases.

    Raises:
        UnusableError: If the device cannot be used, or loading it ends the process.
    """

    def __init__(self, settings: Settings, *, listing: bool = False) -> None:
        config = {**settings.key(), "list": listing}
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "openreg_conformance.worker", json.dumps(config)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment(settings.imports),
            start_new_session=True,
        )
        self._buffer = b""
        try:
            answer = self._answer(START_LIMIT)
        except (EndedError, LateError) as error:
            self.close()
            raise UnusableError(f"the process that loads it {error}") from error
        if "unusable" in answer:
            self.close()
            raise UnusableError(answer["unusable"])
        self.about: dict[str, Any] = answer["ready"]
        self.cases: list[dict[str, Any]] = answer["cases"]

    def run(self, name: str, limit: float) -> Result:
        """Runs a case.

        Raises:
            EndedError: If the worker ended.
            LateError: If it did not answer in time; it was killed.
        """
        self._ask({"case": name, "limit": limit})
        return self._answer(limit)

    def is_usable(self) -> bool:
        """Returns whether the worker can continue with the next case.

        Raises:
            EndedError: If the worker ended.
            LateError: If it did not answer in time; it was killed.
        """
        return bool(self._answer(CARRY_ON_LIMIT)["usable"])

    def program(self, name: str) -> str:
        """Returns the program of a case without running it; empty if that fails."""
        try:
            self._ask({"case": name, "program": True})
            return str(self._answer(START_LIMIT)["program"])
        except (EndedError, LateError):
            return ""

    def close(self) -> None:
        """Ends the process and its children."""
        with contextlib.suppress(BrokenPipeError):
            if self._process.stdin:
                self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(3)
        self.kill()
        self._log.close()

    def kill(self) -> None:
        """Kills the process and its children."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _ask(self, request: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise EndedError(self._ending()) from None

    def _answer(self, limit: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        deadline = time.monotonic() + limit
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([pipe], [], [], left)[0]:
                raise LateError(self._place(limit))
            read = os.read(pipe, 1 << 16)
            if not read:
                raise EndedError(self._ending())
            self._buffer += read
        line, _, self._buffer = self._buffer.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _place(self, limit: float) -> str:
        """Requests the worker's stack and kills it."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGUSR1)
        time.sleep(0.5)  # faulthandler writes in the signal handler
        self.kill()
        return f"did not answer within {limit:g} s{self._said()}"

    def _ending(self) -> str:
        code = self._process.wait()
        self.kill()
        how = f"exited with status {code}"
        if code < 0:
            how = f"ended with {signal.Signals(-code).name}"
        return how + self._said()

    def _said(self) -> str:
        """Returns the end of the process's output."""
        self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, self._log.tell() - 8192))
        text = self._log.read().decode(errors="replace").strip()
        text = text.partition("\nExtension modules:")[0]
        lines = text.splitlines()
        # Frames of this package are not informative.
        lines = [each for each in lines if "openreg_conformance/worker.py" not in each]
        return ": " + "\n".join(lines[-25:]) if lines else ""


class Judge:
    """Runs one case after another, even if worker processes end.

    Args:
        settings: The settings of the run.
        worker: The first worker.
    """

    def __init__(self, settings: Settings, worker: Worker | None = None) -> None:
        self._settings, self._worker = settings, worker
        self._stopped = False

    def judge(self, name: str) -> Result:
        """Returns the outcome of a case, as plain values.

        Raises:
            UnusableError: If the device can no longer be loaded.
            StoppedError: If ``stop`` was called.
        """
        worker = self._worker = self._worker or self._start()
        if self._stopped:
            raise StoppedError
        start = time.monotonic()
        found: Result = {"outcome": "passed"}
        try:
            found = worker.run(name, self._settings.limit)
            usable = worker.is_usable()
        except (EndedError, LateError) as error:
            if self._stopped:
                raise StoppedError from error
            # A case that ends the process after its answer has failed.
            if found["outcome"] != "failed":
                return self._lost(name, error, time.monotonic() - start)
            usable = False
        if not usable:
            self.close()
            found["message"] += "; the device did not compute afterwards"
        return found

    def _lost(self, name: str, error: Exception, seconds: float) -> Result:
        """Returns the outcome of a case that ended its process or was killed."""
        self.close()
        self._worker = self._start()
        return {
            "outcome": "crashed" if isinstance(error, EndedError) else "hung",
            "made": 1,
            "passed": 0,
            "message": f"the process {error}",
            "program": self._worker.program(name),
            "seconds": round(seconds, 4),
        }

    def stop(self) -> None:
        """Makes ``judge`` in another thread abandon its case."""
        self._stopped = True
        worker = self._worker
        if worker is not None:
            worker.kill()

    def close(self) -> None:
        """Ends the process."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def _start(self) -> Worker:
        for _ in range(STARTS - 1):
            with contextlib.suppress(UnusableError):
                return Worker(self._settings)
        return Worker(self._settings)


class Journal:
    """The results so far, in a file that survives the end of the run.

    Args:
        path: The file; None for none.
        resume: Whether to continue with its results.

    Raises:
        ValueError: If another run is writing it.
    """

    def __init__(self, path: Path | None, *, resume: bool = False) -> None:
        self.done: dict[str, Result] = {}
        self._path, self._resume = path, resume
        self._file: TextIO | None = None
        if path is None:
            return
        self._file = path.open("a+", encoding="utf-8")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise ValueError(f"another run is writing {path}") from None
        except OSError as error:  # a file system may not support locks
            sys.stderr.write(f"{path} is not locked: {error}\n")

    def begin(self, facts: dict[str, Any]) -> None:
        """Reads the results of the resumed run, or starts a new journal.

        Args:
            facts: The facts that both runs must share.

        Raises:
            ValueError: If the file belongs to a different run or is not a journal.
        """
        if self._file is None:
            return
        self._file.seek(0)
        # The last line may be incomplete.
        lines = [each for each in self._file if each.endswith("\n")]
        if not self._resume or not lines:
            self._file.truncate(0)
            self._write(facts)
            return
        try:
            before, *results = [json.loads(each) for each in lines]
            different = [k for k, v in facts.items() if before.get(k) != v]
            done = {each["name"]: each for each in results}
        except (ValueError, TypeError, LookupError, AttributeError):
            raise ValueError(
                f"{self._path} is not the journal of a run; run without --resume"
            ) from None
        if different:
            raise ValueError(
                f"{self._path} belongs to a run with a different value of "
                f"{', '.join(different)}; run without --resume"
            )
        self._file.truncate(sum(len(each.encode()) for each in lines))
        self.done = done

    def _write(self, value: dict[str, Any]) -> None:
        if self._file is not None:
            self._file.write(json.dumps(value) + "\n")
            self._file.flush()

    def add(self, result: Result) -> None:
        """Notes a result."""
        self.done[result["name"]] = result
        self._write(result)

    def close(self) -> None:
        """Closes the file without removing it."""
        if self._file is not None:
            self._file.close()

    def remove(self) -> None:
        """Removes the file after the report is written."""
        if self._path is not None:
            self._path.unlink()


class Run:
    """A run over the cases of some suites.

    Args:
        settings: The settings of the run.
        journal: The journal for results.
        progress: Called with the numbers of finished and of all cases.
    """

    def __init__(
        self,
        settings: Settings,
        journal: Journal,
        progress: Callable[[int, int], None] = lambda *_: None,
    ) -> None:
        self._settings = settings
        self._journal = journal
        self._progress = progress
        self._lock = threading.Lock()
        self._problem: BaseException | None = None
        self._stopped = False

    def execute(self) -> dict[str, Any]:
        """Runs the cases that are not in the journal; returns the report.

        Raises:
            UnusableError: If the device cannot be used.
            ValueError: If no case matches a pattern, or the journal belongs to another
                run.
        """
        start = time.monotonic()
        first = Worker(self._settings, listing=True)
        about, listed = first.about, first.cases
        patterns = self._settings.patterns
        wanted = [each for each in listed if _matches(each["name"], patterns)]
        judge = Judge(self._settings, first)
        try:
            self._check_patterns(listed)
            self._journal.begin({**self._settings.key(), **about})
            self._count = len(wanted)
            foundation = [each for each in wanted if each["name"] in FOUNDATIONS]
            self._work(judge, iter([self._left(foundation)]))
        except BaseException:
            judge.close()
            raise
        reason = self._broken_foundation()
        rest = self._left(wanted)
        for each in rest if reason else []:
            if not each["name"].startswith("device/"):
                self._add(each, {"outcome": "blocked", "message": reason})
        groups = itertools.groupby(self._left(wanted), key=_samples_of)
        queue = iter(_Locked(iter([list(cases) for _, cases in groups]), self._lock))
        others = [Judge(self._settings) for _ in range(self._settings.workers - 1)]
        judges = [judge, *others]
        threads = [
            threading.Thread(target=self._serve, args=(each, queue)) for each in judges
        ]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except KeyboardInterrupt:
            self._stopped = True
            for stopped in judges:
                stopped.stop()
            for thread in threads:
                thread.join()
            raise
        if self._problem is not None:
            raise self._problem
        return {
            "format": 1,
            **self._settings.key(),
            **about,
            "seed": 0,
            "seconds": round(time.monotonic() - start, 1),
            "cases": [self._journal.done[each["name"]] for each in wanted],
        }

    def _check_patterns(self, cases: Sequence[dict[str, Any]]) -> None:
        for pattern in self._settings.patterns:
            if not any(_matches(each["name"], [pattern]) for each in cases):
                raise ValueError(
                    f"no case is called {pattern} at the level {self._settings.level}, "
                    f"in {_listed(self._settings.suites)}"
                )

    def _left(self, cases: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        return [each for each in cases if each["name"] not in self._journal.done]

    def _broken_foundation(self) -> str:
        for name in FOUNDATIONS:
            result = self._journal.done.get(name)
            if result is not None and result["outcome"] not in ("passed", "skipped"):
                return f"{name} does not pass"
        return ""

    def _serve(self, judge: Judge, queue: Iterator[list[dict[str, Any]]]) -> None:
        try:
            with contextlib.suppress(StoppedError):
                self._work(judge, queue)
        except BaseException as error:  # reraised by the thread of execute()
            self._problem = error
            self._stopped = True
        finally:
            judge.close()

    def _work(self, judge: Judge, queue: Iterator[list[dict[str, Any]]]) -> None:
        for case in itertools.chain.from_iterable(queue):
            if self._stopped:
                break
            self._add(case, judge.judge(case["name"]))

    def _add(self, case: dict[str, Any], found: Result) -> None:
        with self._lock:
            self._journal.add({**case, **found})
            self._progress(len(self._journal.done), self._count)


class _Locked:
    """An iterator shared by threads."""

    def __init__(self, values: Iterator[Any], lock: threading.Lock) -> None:
        self._values, self._guard = values, lock

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        with self._guard:
            return next(self._values)


def _samples_of(case: dict[str, Any]) -> list[str]:
    """Returns a key shared by cases with the same samples, which one worker creates."""
    return str(case["name"]).split("/")[:3]


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatch.fnmatchcase(name, each) for each in patterns)
