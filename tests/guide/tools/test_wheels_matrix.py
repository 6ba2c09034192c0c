# SPDX-License-Identifier: BSD-3-Clause
"""tools/wheels_matrix.py: the fresh environments, and the results that they give."""

from __future__ import annotations

import sys
import venv

import pytest


@pytest.fixture
def matrix(load_tool):
    return load_tool("wheels_matrix")


@pytest.fixture
def environment(tmp_path):
    """Makes an environment; returns its interpreter and its folder of packages."""
    folder = tmp_path / "environment"
    venv.create(folder, with_pip=False)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return str(folder / "bin" / "python"), folder / "lib" / version / "site-packages"


def test_environment_without_torch_fails_with_the_reason(matrix, environment, tmp_path):
    python, _ = environment
    row = matrix.check(python, tmp_path)
    assert "No module named 'torch'" in row.failure
    assert row.failure in str(row)


def test_folder_without_wheels_fails_with_the_error_of_pip(
    matrix, environment, tmp_path
):
    python, packages = environment
    (packages / "torch.py").write_text("__version__ = '2.13.0+cpu'\n")
    row = matrix.check(python, tmp_path / "no_wheels")
    assert "torch-openreg" in row.failure
    assert row.torch == "2.13.0+cpu"


def test_packages_of_this_project_are_not_linked(matrix, tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    target.mkdir()
    for name in (
        "torch",
        "torch-2.13.0.dist-info",
        "openreg_aten",
        "openreg_aten-0.1.0.dist-info",
        "libopenreg",
        "_openreg_aten_editable.pth",
        "__editable___torch_openreg_0_1_0_finder.py",
        "__pycache__",
        "pip",
        "pip-26.0.dist-info",
    ):
        (source / name).mkdir(parents=True)
    matrix._link(source, target)
    linked = sorted(entry.name for entry in target.iterdir())
    assert linked == ["torch", "torch-2.13.0.dist-info"]
    assert (target / "torch").resolve() == source / "torch"


def test_programs_see_no_program_and_no_setting(matrix, monkeypatch):
    monkeypatch.setenv("OPENREG_DEVICES", "3")
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    source = "import os; print(sorted(os.environ), repr(os.environ['PATH']))"
    done = matrix._run(sys.executable, "-c", source)
    assert "OPENREG_DEVICES" not in done.stdout
    assert "PYTHONPATH" not in done.stdout
    assert done.stdout.endswith("''\n")
