# SPDX-License-Identifier: BSD-3-Clause
"""tools/version.py: one version everywhere."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support.programs import ROOT


@pytest.fixture
def version(load_tool):
    return load_tool("version")


@pytest.fixture
def workspace(tmp_path, version):
    for name in ("VERSION", "tox.ini", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "extension").mkdir()
    shutil.copy(ROOT / "extension" / "torch_versions.txt", tmp_path / "extension")
    for name in version.PACKAGES:
        copy = tmp_path / "packages" / name
        copy.mkdir(parents=True)
        shutil.copy(ROOT / "packages" / name / "pyproject.toml", copy)
    shutil.copytree(ROOT / "recipe", tmp_path / "recipe")
    return tmp_path


def test_version_of_this_workspace_is_one(version):
    assert version.check(ROOT) == []


def test_version_set_reaches_every_copy_and_pin(version, workspace, capsys):
    assert version.main(["--set", "12.3.45"], workspace) == 0
    assert capsys.readouterr().out == "12.3.45\n"
    for path in workspace.glob("packages/*/pyproject.toml"):
        assert 'version = "12.3.45"' in path.read_text()
    assert '  version: "12.3.45"' in (workspace / "recipe/recipe.yaml").read_text()
    meta = (workspace / "packages/torch-openreg/pyproject.toml").read_text()
    for name in version.PACKAGES[:3]:
        assert f'"{name}==12.3.45"' in meta
    aten = (workspace / "packages/openreg-aten/pyproject.toml").read_text()
    assert aten.count('"openreg-runtime==12.3.45"') == 2
    assert "openreg-runtime @ {root:uri}/../openreg-runtime" in aten
    assert "torch>=2." in aten


def test_version_check_compares_the_recipe_with_the_torches(version, workspace, capsys):
    path = workspace / "extension/torch_versions.txt"
    path.write_text(path.read_text().replace("2.13.", "2.12."))
    assert version.main([], workspace) == 1
    assert "variants.yaml: pytorch is ['2.13', " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('version = "', 'version = "9', "version is '9"),
        ("openreg-amp==", "openreg-amp>=", "openreg-amp is pinned '>="),
        ("openreg-runtime==", "openreg-runtime==9", "openreg-runtime is pinned '==9"),
        ('"torch>=', '"torch==', "torch is pinned '=="),
    ],
)
def test_version_check_names_the_copy_that_differs(
    version, workspace, capsys, old, new, expected
):
    path = workspace / "packages/torch-openreg/pyproject.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    assert version.main([], workspace) == 1
    out = capsys.readouterr().out
    assert out.startswith(f"{Path('packages/torch-openreg/pyproject.toml')}: ")
    assert expected in out
    assert len(out.splitlines()) == 1


def test_torch_of_an_environment_is_a_supported_one(version, workspace, capsys):
    tox = workspace / "tox.ini"
    tox.write_text(tox.read_text().replace(" torch==2.1", " torch==1.1", 1))
    assert version.main([], workspace) == 1
    expected = "is not in extension/torch_versions.txt"
    assert expected in capsys.readouterr().out


def test_version_set_refuses_invalid_versions(version, workspace, capsys):
    with pytest.raises(SystemExit):
        version.main(["--set", "next"], workspace)
    assert "version is 'next'; accepted: three numbers" in capsys.readouterr().err
