# SPDX-License-Identifier: BSD-3-Clause
"""``pytest --openreg-as-cuda`` simulates CUDA devices."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.programs import Ended, run, variables

TEST = """
import os
import pytest
import torch

@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.filterwarnings("ignore:CUDA is simulated")
def test_on_a_gpu():
    assert torch.ones(2, device="cuda").add(1).tolist() == [2, 2]
    assert os.environ["OPENREG_DEVICE"] == "cuda"

@pytest.mark.filterwarnings("ignore:CUDA is simulated")
def test_fixtures(openreg_devices):
    assert [str(each) for each in openreg_devices] == ["cuda:0", "cuda:1"]
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "test_sample.py").write_text(TEST)
    return tmp_path


def outcome(folder: Path, *options: str) -> Ended:
    command = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options)
    return run(*command, folder=folder, environment=variables())


def test_the_option(suite: Path) -> None:
    ended = outcome(suite, "--openreg-as-cuda")
    assert "2 passed" in ended.stdout, ended.stdout + ended.stderr


def test_the_option_of_workers(suite: Path) -> None:
    ended = outcome(suite, "--openreg-as-cuda", "-n", "1")
    assert "2 passed" in ended.stdout, ended.stdout + ended.stderr


def test_the_setting(suite: Path) -> None:
    (suite / "pytest.ini").write_text("[pytest]\nopenreg_as_cuda = true\n")
    ended = outcome(suite)
    assert "2 passed" in ended.stdout, ended.stdout + ended.stderr


def test_nothing_happens_without_it(suite: Path) -> None:
    ended = outcome(suite, "-k", "gpu")
    assert "1 skipped" in ended.stdout, ended.stdout + ended.stderr


def test_an_earlier_import_of_torch_is_an_error(suite: Path) -> None:
    (suite / "early.py").write_text("import torch\n")
    ended = outcome(suite, "-p", "early", "--openreg-as-cuda")
    assert ended.returncode == 4
    assert "torch was imported before openreg_cuda" in ended.stderr


def test_a_missing_package_is_named(suite: Path) -> None:
    (suite / "missing.py").write_text(
        "import sys\nsys.modules['openreg_cuda'] = None\n"
    )
    ended = outcome(suite, "-p", "missing", "--openreg-as-cuda")
    assert ended.returncode == 4
    hint = "--openreg-as-cuda, openreg_as_cuda: install the package openreg-cuda"
    assert hint in ended.stderr
