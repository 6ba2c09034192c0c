# SPDX-License-Identifier: BSD-3-Clause
"""Runs cases in processes of their own, which may crash or hang, and takes notes.

Nothing here imports torch or the device. A worker gets one case at a time, so that the
one it crashed in is known; a worker that does not answer in time says where it is, is
ended, and another goes on with the next case. Each result is written to the journal at
once, from which an interrupted run resumes.
"""

from __future__ import annotations

import contextlib
import dataclasses
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

from .loading import UnusableError, environment
from .suites import FOUNDATIONS, SUITES

START_LIMIT = 300.0  # seconds until a worker has imported torch and its databases
CARRY_ON_LIMIT = 20.0  # seconds for a device to compute again after a failure
STARTS = 3  # attempts to start a worker before the run is given up

Result = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Settings:
    """What a run is to do.

    Attributes:
        device: The type of the device.
        level: One of ``LEVELS``.
        suites: Names of suites.
        imports: Modules and files to import after torch.
        patterns: Names of cases to run, with wildcards; all if there are none.
        workers: How many processes run cases.
        limit: Seconds for a case.
        exact: Whether values have to have the CPU's bits, and its random numbers.
    """

    device: str
    level: str = "smoke"
    suites: tuple[str, ...] = SUITES
    imports: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    workers: int = 1
    limit: float = 120.0
    exact: bool = False

    def key(self) -> dict[str, Any]:
        """What a run that is resumed must have in common with the first one."""
        return {
            "device": self.device,
            "level": self.level,
            "suites": list(self.suites),
            "imports": list(self.imports),
            "patterns": list(self.patterns),
            "exact": self.exact,
        }


class EndedError(Exception):
    """Says how a worker ended."""


class LateError(Exception):
    """Says where a worker was when it did not answer in time."""


class Worker:
    """A process that runs cases.

    Args:
        settings: Of the run.
        listing: Whether the worker lists the cases.

    Raises:
        UnusableError: If there is no such device, or loading it ends the process.
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
            LateError: If it did not answer in time; it has ended then.
        """
        self._ask({"case": name})
        return self._answer(limit)

    def is_usable(self) -> bool:
        """Whether the worker can go on with the next case."""
        try:
            return bool(self._answer(CARRY_ON_LIMIT)["usable"])
        except (EndedError, LateError):
            return False

    def program(self, name: str) -> str:
        """Returns a program for a case that is not run; empty if that fails."""
        try:
            self._ask({"case": name, "program": True})
            return str(self._answer(START_LIMIT)["program"])
        except (EndedError, LateError):
            return ""

    def close(self) -> None:
        """Ends the process, and those that it started."""
        with contextlib.suppress(BrokenPipeError):
            if self._process.stdin:
                self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(3)
        self._kill()
        self._log.close()

    def _kill(self) -> None:
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
        """Asks the worker where it is, and ends it."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGUSR1)
        time.sleep(0.5)  # faulthandler writes from the signal
        self._kill()
        return f"did not answer within {limit:g} s{self._said()}"

    def _ending(self) -> str:
        code = self._process.wait()
        self._kill()
        how = f"exited with status {code}"
        if code < 0:
            how = f"ended with {signal.Signals(-code).name}"
        return how + self._said()

    def _said(self) -> str:
        """The end of what the process has written."""
        self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, self._log.tell() - 8192))
        text = self._log.read().decode(errors="replace").strip()
        text = text.partition("\nExtension modules:")[0]
        lines = text.splitlines()
        # Frames of this package say nothing of the device.
        lines = [each for each in lines if "openreg_conformance/worker.py" not in each]
        return ": " + "\n".join(lines[-25:]) if lines else ""


class Judge:
    """Judges one case after another, whatever becomes of the process that runs it.

    Args:
        settings: Of the run.
        worker: A worker to begin with.
    """

    def __init__(self, settings: Settings, worker: Worker | None = None) -> None:
        self._settings, self._worker = settings, worker

    def judge(self, name: str) -> Result:
        """Returns the outcome of a case, as plain values.

        Raises:
            UnusableError: If the device cannot be loaded any more.
        """
        worker = self._worker or self._start()
        self._worker = None
        start = time.monotonic()
        try:
            found = worker.run(name, self._settings.limit)
        except (EndedError, LateError) as error:
            worker.close()
            seconds = round(time.monotonic() - start, 4)
            self._worker = self._start()
            return {
                "outcome": "crashed" if isinstance(error, EndedError) else "hung",
                "made": 1,
                "passed": 0,
                "message": f"the process {error}",
                "program": self._worker.program(name),
                "seconds": seconds,
            }
        if worker.is_usable():
            self._worker = worker
        else:
            worker.close()
            found["message"] += "; the device did not compute afterwards"
        return found

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
    """The results so far, in a file that survives the end of the run."""

    def __init__(self, path: Path | None, settings: Settings, *, resume: bool) -> None:
        self.done: dict[str, Result] = {}
        self._file: TextIO | None = None
        if path is None:
            return
        if resume and path.exists():
            self.done = self._read(path, settings)
        self._file = path.open("a" if self.done else "w", encoding="utf-8")
        if not self.done:
            self._write(settings.key())

    @staticmethod
    def _read(path: Path, settings: Settings) -> dict[str, Result]:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        # The last line may be half written.
        read = [json.loads(line) for line in lines if line.endswith("\n")]
        if not read:
            return {}
        if read[0] != settings.key():
            different = [k for k, v in settings.key().items() if read[0].get(k) != v]
            raise ValueError(
                f"{path} is of a run with another {', '.join(different)}; "
                "run without --resume"
            )
        if not lines[-1].endswith("\n"):
            path.write_text("".join(lines[:-1]), encoding="utf-8")
        return {each["name"]: each for each in read[1:]}

    def _write(self, value: dict[str, Any]) -> None:
        if self._file is not None:
            self._file.write(json.dumps(value) + "\n")
            self._file.flush()

    def add(self, result: Result) -> None:
        """Notes a result."""
        self.done[result["name"]] = result
        self._write(result)

    def close(self) -> None:
        """Closes the file, which stays."""
        if self._file is not None:
            self._file.close()


class Run:
    """One run over the cases of some suites.

    Args:
        settings: What to do.
        journal: Where results go.
        progress: Called with the number of cases that are done, and of all.
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
        """Runs what the journal does not have; returns the report.

        Raises:
            UnusableError: If there is no such device.
            ValueError: If no case has a name that was asked for.
        """
        start = time.monotonic()
        first = Worker(self._settings, listing=True)
        about, listed = first.about, first.cases
        patterns = self._settings.patterns
        wanted = [each for each in listed if _matches(each["name"], patterns)]
        if not wanted:
            first.close()
            raise ValueError(f"no case is called {' or '.join(patterns)}")
        self._count = len(wanted)
        foundation = [each for each in wanted if each["name"] in FOUNDATIONS]
        judge = Judge(self._settings, first)
        self._work(judge, iter([self._left(foundation)]))
        reason = self._broken_foundation()
        rest = self._left(wanted)
        for each in rest if reason else []:
            if not each["name"].startswith("device/"):
                self._add(each, {"outcome": "blocked", "message": reason})
        groups = itertools.groupby(self._left(wanted), key=_samples_of)
        queue = iter(_Locked(iter([list(cases) for _, cases in groups]), self._lock))
        threads = [
            threading.Thread(target=self._serve, args=(each, queue))
            for each in [
                judge,
                *(Judge(self._settings) for _ in range(self._settings.workers - 1)),
            ]
        ]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except KeyboardInterrupt:
            self._stopped = True
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
            self._work(judge, queue)
        except BaseException as error:  # raised again by the thread of execute()
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
    """An iterator that threads share."""

    def __init__(self, values: Iterator[Any], lock: threading.Lock) -> None:
        self._values, self._guard = values, lock

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        with self._guard:
            return next(self._values)


def _samples_of(case: dict[str, Any]) -> list[str]:
    """What cases that are made of the same samples share, which one worker makes."""
    return str(case["name"]).split("/")[:3]


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatch.fnmatchcase(name, each) for each in patterns)
