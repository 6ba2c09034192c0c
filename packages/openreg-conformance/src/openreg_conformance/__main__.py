# SPDX-License-Identifier: BSD-3-Clause
"""The command line.

Exit status: 0 without unexpected failures, 1 with unexpected failures, 2 for bad usage
or an unusable device, and 128 plus the signal number if a signal ended it.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from . import expectations, html, junit, relay, summary
from .case import LEVELS
from .comparing import compare
from .loading import UnusableError
from .runner import Journal, Run, Settings
from .suites import SUITES


class Progress:
    """A progress bar on standard error, with the remaining time."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._first: int | None = None
        self._shown = -1.0

    def __call__(self, done: int, count: int) -> None:
        """Shows the progress of a run."""
        now = time.monotonic()
        if self._first is None:
            self._first, self._start = done - 1, now
        terminal = sys.stderr.isatty()
        if done < count and now - self._shown < (0.2 if terminal else 30.0):
            return
        self._shown = now
        rate = (now - self._start) / max(1, done - self._first)
        left = _duration(rate * (count - done))
        bar = "#" * (20 * done // count)
        text = f"[{bar:20}] {done}/{count}, {left} left"
        end = "" if terminal and done < count else "\n"
        text = f"\r{text:60}" if terminal else text
        print(text, end=end, file=sys.stderr, flush=True)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="openreg-conformance",
        description="Judge a device of PyTorch: what works as on the CPU, what to fix.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="judge a device")
    run.add_argument("--device", required=True, help="its type, such as cuda")
    run.add_argument("--level", choices=LEVELS, default="smoke")
    run.add_argument(
        "--suite",
        action="append",
        choices=SUITES,
        help="only this one; may be repeated",
    )
    run.add_argument(
        "--case", action="append", default=[], help="only cases of this name; wildcards"
    )
    run.add_argument(
        "--import",
        dest="imports",
        action="append",
        default=[],
        metavar="MODULE",
        help="import this module, or file.py, after torch; may be repeated",
    )
    run.add_argument("--workers", type=int, default=1, help="processes that run cases")
    run.add_argument(
        "--timeout", type=float, default=120.0, help="seconds for a case (120)"
    )
    run.add_argument(
        "--exact",
        action="store_true",
        help="require bitwise equality and the CPU's random numbers",
    )
    run.add_argument("--resume", action="store_true", help="continue the run of --json")
    _add_outputs(run)
    shown = commands.add_parser("report", help="make reports of the JSON of a run")
    shown.add_argument("file", type=Path)
    _add_outputs(shown)
    compared = commands.add_parser("compare", help="compare two runs, or two devices")
    compared.add_argument("before", type=Path)
    compared.add_argument("after", type=Path)
    program = commands.add_parser("program", help="print the program of a failure")
    program.add_argument("file", type=Path, help="the JSON of a run")
    program.add_argument("case")
    return parser


def _add_outputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--expect", type=Path, help="TOML file of known failures")
    parser.add_argument("--json", type=Path, help="write the results here")
    parser.add_argument("--html", type=Path, help="write a page here")
    parser.add_argument("--junit", type=Path, help="write JUnit's XML here")
    parser.add_argument(
        "--payload", type=Path, help="write the result for PyTorch's CI relay here"
    )
    parser.add_argument("--advices", type=int, default=summary.ADVICES)


def _journal_of(path: Path | None) -> Path | None:
    return path.with_name(path.name + ".journal") if path else None


def _run(options: argparse.Namespace) -> int:
    if options.resume and options.json is None:
        raise ValueError("--resume needs --json: the journal is next to that file")
    known = expectations.read(options.expect) if options.expect else []
    settings = Settings(
        options.device,
        options.level,
        tuple(each for each in SUITES if each in (options.suite or SUITES)),
        tuple(options.imports),
        tuple(options.case),
        options.workers,
        options.timeout,
        options.exact,
    )
    _check_outputs(options)
    journal = Journal(_journal_of(options.json), resume=options.resume)
    try:
        with _ends_as_interrupted():
            report = Run(settings, journal, Progress()).execute()
        status = _show(report, known, options)
        journal.remove()
    except UnusableError as error:
        raise ValueError(f"device {options.device} cannot be used: {error}") from error
    finally:
        journal.close()
    return status


@contextlib.contextmanager
def _ends_as_interrupted() -> Iterator[None]:
    """Makes SIGTERM end a run like Ctrl-C, which also ends the workers."""

    def interrupt(number: int, _frame: object) -> None:
        raise KeyboardInterrupt(number)

    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread can handle signals
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


def _check_outputs(options: argparse.Namespace) -> None:
    """Checks the output paths before a long run."""
    if options.advices < 0:
        raise ValueError(f"--advices is {options.advices}; accepted: 0 or more")
    if options.payload:
        relay.check(os.environ)
    for path in (options.json, options.html, options.junit, options.payload):
        if path is None:
            continue
        if path.is_dir():
            raise ValueError(f"{path} is a folder")
        if not path.parent.is_dir():
            raise ValueError(f"{path}: the folder {path.parent} does not exist")
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise ValueError(f"{path} cannot be written")


def _show(
    report: dict[str, Any],
    known: Sequence[expectations.Expectation],
    options: argparse.Namespace,
) -> int:
    expectations.apply(report, known)
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    if options.html:
        options.html.write_text(html.page(report), encoding="utf-8")
    if options.junit:
        options.junit.write_text(junit.document(report), encoding="utf-8")
    if options.payload:
        now = datetime.datetime.now(datetime.UTC)
        sent = relay.document(report, os.environ, now)
        options.payload.write_text(json.dumps(sent, indent=1) + "\n", encoding="utf-8")
    print("\n".join(summary.lines(report, options.advices)))
    return 1 if expectations.surprises(report) else 0


def read(path: Path) -> dict[str, Any]:
    """Reads the JSON report of a run.

    Raises:
        ValueError: If the file is not a report.
    """
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error
    if not _is_report(report):
        raise ValueError(f"{path} is not the JSON report of a run")
    found: dict[str, Any] = report
    return found


def _is_report(value: Any) -> bool:
    facts = {"device", "device_name", "level", "torch", "python", "seconds", "cases"}
    if not isinstance(value, dict) or value.get("format") != 1 or facts - set(value):
        return False
    cases, named = value["cases"], {"name", "mechanism", "title", "users", "outcome"}
    return isinstance(cases, list) and all(
        isinstance(each, dict) and named <= set(each) for each in cases
    )


def _program(options: argparse.Namespace) -> int:
    for case in read(options.file)["cases"]:
        if case["name"] == options.case:
            if not case.get("program"):
                raise ValueError(
                    f"{options.case} has no program: its outcome is {case['outcome']}"
                )
            print(case["program"], end="")
            return 0
    raise ValueError(f"{options.file} has no case {options.case}")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    options = _parser().parse_args(argv)
    try:
        if options.command == "run":
            return _run(options)
        if options.command == "program":
            return _program(options)
        if options.command == "report":
            _check_outputs(options)
            known = expectations.read(options.expect) if options.expect else []
            return _show(read(options.file), known, options)
        text, worse = compare(read(options.before), read(options.after))
        print(text)
        return 1 if worse else 0
    except BrokenPipeError:
        return 0
    except (ValueError, OSError) as error:
        print(f"openreg-conformance: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as interrupt:
        can = options.command == "run" and options.json is not None
        more = "; run the same command with --resume to continue" if can else ""
        print(f"\nopenreg-conformance: interrupted{more}", file=sys.stderr)
        return 128 + (interrupt.args[0] if interrupt.args else signal.SIGINT)


if __name__ == "__main__":
    sys.exit(main())
