# SPDX-License-Identifier: BSD-3-Clause
"""The job and the fixture that other projects copy."""

from __future__ import annotations

import shutil
from pathlib import Path

import yaml

from .conftest import ROOT, Run

EXAMPLE = ROOT / "examples" / "ci"


def test_job_is_valid_yaml_and_runs_the_tests() -> None:
    text = (EXAMPLE / "tests.yml").read_text("utf-8")
    job = yaml.safe_load(text)["jobs"]["openreg"]
    assert isinstance(job["runs-on"], str)
    assert all(("run" in step) != ("uses" in step) for step in job["steps"])
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands.count("pytest") == 2
    assert "python -m torch_openreg" in commands
    assert all(isinstance(value, str) for value in job["env"].values())


def test_fixture_runs_on_both_devices_or_skips(run: Run, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE / "tests", tmp_path / "tests")
    arguments = ("-m", "pytest", "-p", "no:cacheprovider", "tests")
    assert "2 passed" in run(*arguments).stdout
    without = run(*arguments, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert "1 passed, 1 skipped" in without.stdout
