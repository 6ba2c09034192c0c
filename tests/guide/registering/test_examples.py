# SPDX-License-Identifier: BSD-3-Clause
"""Each example prints the documented output, and fails as documented without a part.

A part is the code between ``# [docs: name]`` and ``# [docs: end]``. ``# without name:
...`` is the output or error of the program without the part.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.programs import ROOT, Program

EXAMPLES = ROOT / "examples" / "registering"
SOURCES = {
    path: path.read_text(encoding="utf-8") for path in sorted(EXAMPLES.glob("*.py"))
}


def needs_library(path: Path) -> bool:
    return path.with_suffix(".cpp").exists()


def marks(path: Path) -> list[pytest.MarkDecorator]:
    # The first test that needs a library waits until all are built.
    return [pytest.mark.slow, pytest.mark.timeout(1200)] if needs_library(path) else []


@pytest.fixture
def path(request: pytest.FixtureRequest) -> Path:
    """Returns the path of the parameter, after building its library."""
    value: Path = request.param
    if needs_library(value):
        request.getfixturevalue("libraries")
    return value


def said(source: str, what: str) -> list[str]:
    return re.findall(rf"^ *# {what}: (.*)$", source, re.MULTILINE)


def without(source: str, part: str) -> str:
    pattern = rf"^# \[docs: {part}\]$.*?^# \[docs: end\]$"
    rest, count = re.subn(pattern, "", source, flags=re.MULTILINE | re.DOTALL)
    assert count == 1, f"no part {part}"
    return rest


def reaches_memory(path: Path) -> bool:
    """Returns whether kernels of a program's library use pointers to device memory."""
    library = path.with_suffix(".cpp")
    source = library.read_text(encoding="utf-8") if library.exists() else ""
    return "launch.h" in source or "orGetKernelPointer" in source


def differences(path: Path, part: str = "") -> list[pytest.MarkDecorator]:
    names = ["kernels"] if not part and reaches_memory(path) else []
    names += ["operators"] if (path.stem, part) == ("custom_op", "kernel") else []
    return [pytest.mark.differs_in_process(name) for name in names]


PROGRAMS = [
    pytest.param(path, id=path.stem, marks=marks(path) + differences(path))
    for path in SOURCES
]
PARTS = [
    pytest.param(
        *(path, part, failure),
        id=f"{path.stem}-{part}",
        marks=marks(path) + differences(path, part),
    )
    for path, source in SOURCES.items()
    for part, failure in re.findall(r"^ *# without (\w+): (.*)$", source, re.MULTILINE)
]


@pytest.mark.parametrize("path", PROGRAMS, indirect=True)
def test_example_prints_the_documented_output(program: Program, path: Path) -> None:
    expected = said(SOURCES[path], "prints")
    assert expected, "an example must document its output"
    result = program(path, SOURCES[path])
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == expected


@pytest.mark.parametrize(("path", "part", "failure"), PARTS, indirect=["path"])
def test_example_fails_as_documented_without_a_part(
    program: Program, path: Path, part: str, failure: str
) -> None:
    assert failure not in said(SOURCES[path], "prints")
    result = program(path, without(SOURCES[path], part))
    assert failure in result.stdout + result.stderr
    assert result.returncode in (0, 1)  # a wrong result or an exception, not a crash


def test_every_example_shows_a_failure() -> None:
    silent = [
        path.name for path, source in SOURCES.items() if "# without " not in source
    ]
    assert SOURCES
    assert silent == []


def test_every_cpp_example_has_a_program_and_is_built() -> None:
    cmake = (EXAMPLES / "CMakeLists.txt").read_text(encoding="utf-8")
    names = sorted(path.stem for path in EXAMPLES.glob("*.cpp"))
    assert names
    for name in names:
        assert (EXAMPLES / f"{name}.py").exists()
        assert re.search(rf"\b{name}\b", cmake)


def test_every_example_is_on_the_page() -> None:
    page = (ROOT / "docs" / "registering.md").read_text(encoding="utf-8")
    files = [*EXAMPLES.glob("*.py"), *EXAMPLES.glob("*.cpp")]
    missing = [
        file.name
        for file in files
        if f"<!-- quote: ../examples/registering/{file.name}" not in page
    ]
    assert missing == []


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.differs_in_process("kernels")
@pytest.mark.usefixtures("libraries")
def test_trace_shows_the_calls_of_code_that_asks_for_it(program: Program) -> None:
    path = EXAMPLES / "custom_abs.py"
    result = program(path, SOURCES[path], TORCH_SHOW_DISPATCH_TRACE="1")
    assert result.returncode == 0, result.stderr
    assert "[call] op=[demo::custom_abs], key=[PrivateUse1]" in result.stderr
