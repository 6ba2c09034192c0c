# SPDX-License-Identifier: BSD-3-Clause
"""extension/_libraries.py: the libraries for the installed torch, or one error."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from support.programs import ROOT

VERSIONS = ("2.9", "2.13", "2.14", "2.15")


@pytest.fixture
def package(tmp_path):
    """Writes a package that selects its libraries for the torch in ``TORCH``."""
    folder = tmp_path / "some_package"
    folder.mkdir()
    shutil.copy(ROOT / "extension" / "_libraries.py", folder)
    (folder / "__init__.py").write_text(
        "import os\n"
        "from . import _libraries\n"
        "_libraries.select(__path__, os.environ['TORCH'])\n"
        "from . import _C\n"
    )
    for version in VERSIONS:
        libraries = folder / f"torch_{version.replace('.', '_')}"
        libraries.mkdir()
        (libraries / "_C.py").write_text(f"print('loaded for', {version!r})\n")
    return folder


def run(package, torch):
    return subprocess.run(
        [sys.executable, "-c", "import some_package"],
        cwd=package.parent,
        env=os.environ | {"TORCH": torch},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("torch", "minor"),
    [
        ("2.14", "2.14"),
        ("2.14.0", "2.14"),
        ("2.14.1+cpu", "2.14"),
        ("2.13.0+cu130", "2.13"),
        ("2.15.0a0+git1", "2.15"),
        ("2.15.0.dev20261127", "2.15"),
    ],
)
def test_libraries_of_the_minor_version_are_loaded(package, torch, minor):
    done = run(package, torch)
    assert done.stderr == ""
    assert done.stdout == f"loaded for {minor}\n"


@pytest.mark.parametrize("torch", ["2.16.0", "2.1.4", "3.13.0", "2.12.1+cpu"])
def test_other_torch_is_refused_before_a_library_is_loaded(package, torch):
    done = run(package, torch)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1] == (
        "RuntimeError: some-package was built for torch 2.9, 2.13, 2.14, 2.15, but "
        f"torch {torch} is installed. Install a supported torch: "
        f'pip install "torch==2.15.*"; or build some-package again for torch {torch}.'
    )


def test_build_from_source_names_its_only_torch(package):
    for version in ("2.9", "2.13", "2.15"):
        shutil.rmtree(package / f"torch_{version.replace('.', '_')}")
    assert run(package, "2.14.1").stdout == "loaded for 2.14\n"
    assert (
        "was built for torch 2.14, but torch 2.15.0 is" in run(package, "2.15.0").stderr
    )


def test_folder_in_any_entry_of_the_path_is_found(package, load_program):
    path = ["no such folder", str(package)]
    load_program("extension/_libraries.py").select(path, "2.13.1")
    assert path == ["no such folder", str(package), str(package / "torch_2_13")]


def test_package_without_libraries_is_refused(package):
    for version in VERSIONS:
        shutil.rmtree(package / f"torch_{version.replace('.', '_')}")
    done = run(package, "2.14.1")
    assert done.stderr.splitlines()[-1] == (
        "RuntimeError: some-package has no libraries. Install it again."
    )
