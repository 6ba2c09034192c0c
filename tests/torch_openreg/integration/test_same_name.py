# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's test package torch_openreg has the same name: both installed.

Both are stand-ins: wheels with the names, versions and entry points of the real ones,
installed with pip.
"""

from __future__ import annotations

import os
import sys
import zipfile
from pathlib import Path

import pytest

from support.programs import run

THEIRS = ("torch_openreg", "0.0.1", "in-tree")
OURS = ("torch-openreg", "0.1.0", "ours")
ASK = (
    "import importlib.metadata as m, torch_openreg as t; "
    "print(t.WHICH, sorted({(d.name, d.version) for d in m.distributions()"
    " if 'openreg' in d.name}), "
    "[e.name for e in m.entry_points(group='torch.backends')])"
)


def make_wheel(folder: Path, name: str, version: str, which: str) -> Path:
    """Writes a wheel with one module ``torch_openreg`` and an entry point."""
    stem = f"torch_openreg-{version}"
    info = f"{stem}.dist-info"
    entry = "openreg" if which == "ours" else "torch_openreg"
    tag = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    named = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    files = {
        "torch_openreg/__init__.py": f"WHICH = {which!r}\n_autoload = int\n",
        f"torch_openreg/only_{which.replace('-', '_')}.py": "",
        f"{info}/METADATA": named,
        f"{info}/WHEEL": tag,
        f"{info}/entry_points.txt": (
            f"[torch.backends]\n{entry} = torch_openreg:_autoload\n"
        ),
    }
    wheel = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
        lines = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
        archive.writestr(f"{info}/RECORD", lines)
    return wheel


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """Returns the interpreter of an empty environment."""
    environment = tmp_path / "environment"
    made = run(sys.executable, "-m", "venv", "--without-pip", environment)
    assert made.returncode == 0, made.stderr
    return environment / "bin" / "python"


def clean() -> dict[str, str]:
    """Returns the variables of this process except the path of its packages."""
    return {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}


def install(python: Path, wheel: Path) -> str:
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--no-index"]
    result = run(*pip, wheel, environment=clean())
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize(("first", "second"), [(THEIRS, OURS), (OURS, THEIRS)])
def test_pip_replaces_the_one_by_the_other(
    python: Path, tmp_path: Path, first: tuple[str, ...], second: tuple[str, ...]
) -> None:
    install(python, make_wheel(tmp_path, *first))
    output = install(python, make_wheel(tmp_path, *second))
    assert f"Uninstalling {first[0]}-{first[1]}" in output
    result = run(python, "-c", ASK, environment=clean())
    entry = "openreg" if second is OURS else "torch_openreg"
    expected = f"{second[2]} [{(second[0], second[1])}] ['{entry}']"
    assert result.stdout.strip() == expected, result.stderr
    module = next(python.parents[1].glob("lib/*/site-packages/torch_openreg"))
    left = {path.stem for path in module.glob("only_*.py")}
    assert left == {f"only_{second[2].replace('-', '_')}"}


@pytest.mark.parametrize(("first", "second"), [(THEIRS, OURS), (OURS, THEIRS)])
def test_of_two_folders_the_first_one_on_the_path_is_used_whole(
    tmp_path: Path, first: tuple[str, ...], second: tuple[str, ...]
) -> None:
    for wheel in (first, second):
        with zipfile.ZipFile(make_wheel(tmp_path, *wheel)) as archive:
            archive.extractall(tmp_path / wheel[2])
    path = os.pathsep.join(str(tmp_path / wheel[2]) for wheel in (first, second))
    result = run(
        *(sys.executable, "-S", "-c", ASK),
        environment=clean() | {"PYTHONPATH": path},
    )
    entry = "openreg" if first is OURS else "torch_openreg"
    assert result.stdout.startswith(f"{first[2]} "), result.stderr
    assert result.stdout.strip().endswith(f" ['{entry}']")
