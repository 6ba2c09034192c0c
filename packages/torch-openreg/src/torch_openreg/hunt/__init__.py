# SPDX-License-Identifier: BSD-3-Clause
"""``python -m torch_openreg hunt``: runs a test suite in the modes that find bugs."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ._modes import Mode, choose_modes
from ._page import page
from ._results import WHOLE_RUN, Hunt
from ._suite import Suite

__all__ = ["main"]


def _number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m torch_openreg hunt",
        description="Runs a test suite in each mode that finds bugs, and prints a "
        "table of the tests that fail.",
    )
    parser.add_argument(
        "--seeds", type=_number, default=5, help="number of random schedules (5)"
    )
    parser.add_argument(
        "--allocations",
        type=_number,
        default=3,
        help="number of runs in which allocations fail, from the 1st, 2nd, ... on (3)",
    )
    parser.add_argument(
        "--modes", help="only these modes, by name or by kind, such as lazy,random"
    )
    parser.add_argument(
        "--timeout",
        type=_number,
        default=0,
        help="seconds for each run; 0 allows ten times the first run and a minute",
    )
    parser.add_argument("--json", type=Path, help="file for the results as JSON")
    parser.add_argument("--html", type=Path, help="file for the results as a page")
    parser.add_argument(
        "command", nargs=argparse.REMAINDER, help="pytest and its arguments"
    )
    return parser


def main(words: Sequence[str]) -> int:
    """Runs the command.

    Args:
        words: The arguments after ``hunt``.

    Returns:
        The exit status: 1 if a test fails in a mode, else 0.
    """
    parser = _parser()
    options = parser.parse_args(words)
    program, *arguments = options.command or [""]
    if program != "pytest":
        parser.error(f"command {program!r}: expected pytest and its arguments")
    try:
        modes = choose_modes(options.seeds, options.allocations, options.modes)
    except ValueError as error:
        parser.error(str(error))
    hunt = _run(modes, arguments, options.timeout)
    print(hunt.table())
    if options.json:
        options.json.write_text(json.dumps(hunt.as_json(), indent=2) + "\n")
    if options.html:
        options.html.write_text(page(hunt), encoding="utf-8")
    return 1 if hunt.findings() or hunt.plain_failures() else 0


def _run(modes: Sequence[Mode], arguments: Sequence[str], timeout: int) -> Hunt:
    hunt = Hunt(list(arguments))
    with tempfile.TemporaryDirectory(prefix="openreg-hunt-") as folder:
        suite = Suite(arguments, Path(folder))
        for number, mode in enumerate(modes, 1):
            print(f"[{number}/{len(modes)}] {mode.name} ...", end=" ", file=sys.stderr)
            sys.stderr.flush()
            run = suite.run(mode, timeout or hunt.default_timeout())
            hunt.runs.append(run)
            print(run.summary(), file=sys.stderr)
            if mode.is_plain and WHOLE_RUN in run.failures:
                print(run.output, file=sys.stderr)
                break  # no mode would run more
    return hunt
