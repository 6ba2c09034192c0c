# SPDX-License-Identifier: BSD-3-Clause
"""examples/test_your_library: its tests pass, and find each planted bug."""

from __future__ import annotations

import re
import runpy
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from support.programs import ROOT, run, variables

EXAMPLE = ROOT / "examples" / "test_your_library"
ON_THE_CPU = "test_training_lowers_the_loss"


BUGS: dict[str, Any] = runpy.run_path(str(EXAMPLE / "bugs.py"))["BUGS"]


def run_suite(folder: Path) -> tuple[dict[str, str], str]:
    """Runs the suite in a folder; returns the outcome of each test, and the output."""
    result = run(
        *(sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider"),
        # An operator with an injected failure must fail where it is called.
        environment=variables(PYTHONDONTWRITEBYTECODE="1", OPENREG_ENQUEUE_BURSTS="0"),
        folder=folder,
    )
    found = re.findall(
        r"^(PASSED|FAILED|ERROR) \S+::(\w+)", result.stdout, re.MULTILINE
    )
    return {name: outcome for outcome, name in found}, result.stdout + result.stderr


@pytest.mark.slow
def test_suite_passes_as_it_is() -> None:
    outcomes, output = run_suite(EXAMPLE)
    assert set(outcomes.values()) == {"PASSED"}, output
    assert outcomes.keys() > set().union(*(bug.found_by for bug in BUGS.values()))


@pytest.mark.slow
@pytest.mark.parametrize("name", BUGS)
def test_planted_bug_is_found_on_the_device_only(name: str, tmp_path: Path) -> None:
    bug = BUGS[name]
    folder = tmp_path / "library"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    library = folder / "tinytrain.py"
    source = library.read_text(encoding="utf-8")
    assert source.count(bug.right) == 1
    library.write_text(source.replace(bug.right, bug.wrong), encoding="utf-8")

    outcomes, output = run_suite(folder)
    failed = {test for test, outcome in outcomes.items() if outcome != "PASSED"}
    assert failed == bug.found_by, output
    assert bug.message in output
    assert outcomes[ON_THE_CPU] == "PASSED"
