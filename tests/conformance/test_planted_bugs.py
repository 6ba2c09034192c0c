# SPDX-License-Identifier: BSD-3-Clause
"""Each planted bug is found, and its finding is ranked first or second.

``pytest -m whole`` tests all bugs, in many processes; the default is a few.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from openreg_conformance.ranking import rank

from .planted_bugs import BUGS

pytestmark = pytest.mark.timeout(900)

FILE = Path(__file__).with_name("planted_bugs.py")
PROGRAMS = ("rng", "semantics", "autocast")
PLAIN = ("memory", "streams", "serialization")
# Importing PyTorch's databases takes long, so only bugs of operators are tested with
# operator cases.
OPERATORS = ("add", "mul", "sum", "addmm", "cat", "sqrt", "mm", "stack")
DATABASES = ("nn.Linear", "nn.GELU")
OF_OPERATORS = {"operators", "in_place", "out", "gradients", "versions", "errors"}
EXTRA = {"process_group": ["distributed/*"], "optimizers": ["optimizers/Adam/*"]}
FEW = ("gelu_is_missing", "clone_is_an_alias", "event_never_completes")


def patterns(name: str) -> list[str]:
    """Returns the cases that test a bug."""
    mechanism, only = BUGS[name].mechanism, BUGS[name].cases
    if only:
        return list(only)
    # Two cases of the device start a process.
    most = ("device/[!ip]*", "device/items*")
    device = ("device/*",) if mechanism in ("exit", "errors") else most
    chosen = [*device, *(f"{each}/*" for each in PROGRAMS)]
    if mechanism in OF_OPERATORS:
        chosen += [f"operators/{each}/*" for each in OPERATORS]
        chosen += [f"modules/{each}/*" for each in DATABASES]
    else:
        chosen += [f"{each}/*" for each in PLAIN]
    return chosen + EXTRA.get(mechanism, [])


def suites(chosen: list[str]) -> list[str]:
    return [
        word
        for name in dict.fromkeys(each.partition("/")[0] for each in chosen)
        for word in ("--suite", name)
    ]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    whole = metafunc.config.getoption("markexpr") == "whole"
    marks = [pytest.mark.whole if whole else pytest.mark.slow]
    names = [pytest.param(name, marks=marks) for name in (BUGS if whole else FEW)]
    metafunc.parametrize("name", names)


def test_planted_bug_is_named_first_or_second(name: str, tmp_path: Path) -> None:
    bug, chosen = BUGS[name], patterns(name)
    output = tmp_path / "out.json"
    command = [
        sys.executable,
        "-m",
        "openreg_conformance",
        "run",
        "--device",
        "openreg",
    ]
    command += ["--import", str(FILE), "--json", str(output)]
    command += ["--level", "sample"] if bug.cases else ["--timeout", "20"]
    command += [word for each in chosen for word in ("--case", each)] + suites(chosen)
    done = subprocess.run(
        command,
        # All work is enqueued, so that a missing wait is detected.
        env={**os.environ, "PLANTED_BUG": name, "OPENREG_INLINE_BYTES": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    findings = rank(json.loads(output.read_text(encoding="utf-8")))
    found = [
        bug.mechanism == each.mechanism and bug.subject in each.subject
        for each in findings
    ]
    assert any(found[:2]), "\n".join(
        f"{each.title}: {each.cases[0]['name']}: {each.cases[0]['message'][:200]}"
        for each in findings[:6]
    )
