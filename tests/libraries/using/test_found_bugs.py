# SPDX-License-Identifier: BSD-3-Clause
"""The device finds bugs of released libraries, which their CPU tests do not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .conftest import ROOT, Run

BUGS = sorted((ROOT / "examples" / "found_bugs").glob("*.py"))


def test_there_are_bugs() -> None:
    assert len(BUGS) >= 3


@pytest.mark.parametrize("path", BUGS, ids=lambda path: path.stem)
def test_bug_shows_on_the_device_and_not_on_the_cpu(run: Run, path: Path) -> None:
    here = run(str(path), "cpu")
    assert here.returncode == 0, here.stderr
    there = run(str(path), "openreg")
    said = re.search(r"on the device: (.*)$", path.read_text("utf-8"), re.M)
    assert said is not None
    assert there.returncode == 1
    assert said[1] in there.stderr
    library = path.stem.partition("_")[0]
    assert f"site-packages/{library}/" in there.stderr
