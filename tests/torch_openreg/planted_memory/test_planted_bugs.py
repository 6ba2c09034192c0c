# SPDX-License-Identifier: BSD-3-Clause
"""Each mode finds the planted bugs that it is for, and none of the others."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from support.programs import run, variables

from . import programs
from .programs import PROGRAMS, modes_of

MODES = {
    "nan": {"OPENREG_UNINITIALIZED": "nan"},
    "sanitizer": {"OPENREG_SANITIZER": "1"},
    "t4": {"OPENREG_PROFILE": "t4"},
    "p100": {"OPENREG_PROFILE": "p100"},
    "a100": {"OPENREG_PROFILE": "a100"},
}

pytestmark = pytest.mark.differs_in_process("uninitialized", run=False)


def failures(**environment: str) -> dict[str, str]:
    """Returns the programs that fail, with the names of their errors."""
    if "OPENREG_PROFILE" not in environment:
        environment["OPENREG_DEVICE_MEMORY"] = "16GiB"  # also on small machines
    ended = run(
        sys.executable,
        str(Path(programs.__file__)),
        environment=variables(**environment),
    )
    assert ended.returncode == 0, ended.stderr
    found: dict[str, str] = json.loads(ended.stdout.splitlines()[-1])
    return found


def test_no_bug_is_found_without_a_mode() -> None:
    assert failures() == {}


@pytest.mark.parametrize("mode", MODES)
def test_mode_finds_its_bugs_and_no_others(mode: str) -> None:
    expected = {each.__name__ for each in PROGRAMS if mode in modes_of(each)}
    assert set(failures(**MODES[mode])) == expected


def test_sanitizer_reports_unwritten_memory() -> None:
    found = failures(**MODES["sanitizer"])
    assert set(found.values()) == {"UninitializedReadError"}


def test_each_bug_is_found_by_a_mode() -> None:
    assert len(PROGRAMS) == 24
    for program in PROGRAMS:
        assert modes_of(program) <= set(MODES)
        assert modes_of(program)
