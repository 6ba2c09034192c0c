# SPDX-License-Identifier: BSD-3-Clause
"""A copy of the skeleton with torch-openreg: each works alone; both are an error."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.backends import NAME, SKELETON, Environment
from support.programs import ROOT, Ended, run

REFUSED = {
    f"torch_{NAME}": f"torch-{NAME} cannot be loaded: the backend 'openreg' is",
    "torch_openreg": f"openreg-aten cannot be loaded: the backend '{NAME}' is",
}
HELP = "Set TORCH_DEVICE_BACKEND_AUTOLOAD=0 and import one of the two packages"
NOT_AUTOLOADED = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Returns an environment with both: the tests' torch-openreg and a new copy."""
    made = Environment(tmp_path_factory.mktemp("environment"))
    folder = tmp_path_factory.mktemp("copy") / "backend"
    written = run(made.python, SKELETON / "rename.py", NAME, folder)
    assert written.returncode == 0, written.stderr
    made.install(folder)
    return made


def ended(environment: Environment, source: str, **variables: str) -> Ended:
    return run(
        *(environment.python, "-c", source),
        environment=environment.variables | variables,
        folder=Path(os.sep),
    )


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_import_of_torch_names_both_and_ends_no_process(
    environment: Environment,
) -> None:
    result = ended(environment, "import torch")
    assert result.returncode == 1, result.stderr  # an exception instead of a signal
    assert any(text in result.stderr for text in REFUSED.values())
    assert HELP in result.stderr
    assert "Failed to load the backend extension: " in result.stderr


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("second", REFUSED)
def test_second_backend_is_refused_and_the_first_one_works(
    environment: Environment, second: str
) -> None:
    (first,) = REFUSED.keys() - {second}
    source = f"""
import torch, {first}
try:
    import {second}
except RuntimeError as error:
    print(error)
device = {first!r}.removeprefix("torch_")
print((torch.ones(2, device=device) + torch.rand(2, device=device)).device)
"""
    result = ended(environment, source, **NOT_AUTOLOADED)
    assert result.returncode == 0, result.stderr
    error, device = result.stdout.splitlines()
    assert error.startswith(REFUSED[second])
    assert HELP in error
    assert device == f"{first.removeprefix('torch_')}:0"


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_second_library_without_its_package_ends_the_process_as_documented(
    environment: Environment,
) -> None:
    source = f"""
import importlib.util, torch, torch_openreg
from pathlib import Path
folder = Path(importlib.util.find_spec("torch_{NAME}").origin).parent
torch.ops.load_library(folder / "libtorch_{NAME}.so")
"""
    result = ended(environment, source, **NOT_AUTOLOADED)
    assert result.returncode < 0
    page = (ROOT / "docs" / "bring_up.md").read_text(encoding="utf-8")
    shown = "Tried to register multiple backend fallbacks for the same dispatch key"
    assert shown in " ".join(page.split())
    assert f"{shown} AutocastPrivateUse1" in result.stderr
