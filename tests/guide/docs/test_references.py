# SPDX-License-Identifier: BSD-3-Clause
"""Names in the guide exist, and the code's names are in the guide."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import openreg_amp
import openreg_runtime
import pytest_openreg
import torch_openreg.testing
from support.programs import ROOT

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))

Page = Callable[[str], str]
Cells = Callable[[str], list[list[str]]]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_paths_in_the_text_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    named = re.findall(r"`((?:packages|tests|tools|examples|docs)/[\w./-]+)", text)
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_rules_of_the_device_name_tests_that_exist(cells: Cells) -> None:
    sources = "".join(
        file.read_text(encoding="utf-8")
        for file in (ROOT / "tests" / "runtime" / "cpp").glob("*.cpp")
    )
    known = {
        f"{suite}.{name}"
        for suite, name in re.findall(r"\bTEST(?:_F)?\((\w+), (\w+)\)", sources)
    }
    pages = ("device.md", "device_memory.md", "device_errors.md")
    rules = [row for name in pages for row in cells(name) if len(row) == 4]
    named = {
        name
        for row in rules
        if row[3] != "test"
        for name in re.findall(r"[^\s,]+", row[3])
    }
    assert len(rules) > 40
    for name in named - known:
        file, _, function = name.partition("::")
        assert f"def {function}(" in (ROOT / file).read_text(encoding="utf-8"), name


def test_every_c_function_is_named(page: Page) -> None:
    headers = (ROOT / "packages/openreg-runtime/include/openreg").glob("*.h")
    declared = re.findall(
        r"^OPENREG_(?:API|EXPORT) [\w\s*]*?\b(or[A-Z]\w*)\(",
        "".join(header.read_text(encoding="utf-8") for header in headers),
        re.MULTILINE,
    )
    table = page("runtime_api.md").partition("## C API")[2]
    assert len(declared) > 40
    assert sorted(set(re.findall(r"`(or[A-Z]\w*)`", table))) == sorted(declared)


def test_every_name_of_the_runtime_is_named(page: Page) -> None:
    names = openreg_runtime.__all__
    text = page("runtime_api.md")
    assert [name for name in names if f"`{name}`" not in text] == []
    names = openreg_runtime.failures.__all__
    assert [n for n in names if f"`failures.{n}`" not in page("failures.md")] == []


def test_every_public_name_is_named(page: Page) -> None:
    names = torch.openreg.__all__
    assert [name for name in names if f"`{name}`" not in page("python.md")] == []
    amp = torch.openreg.amp.__all__
    text = page("python.md")
    assert [n for n in amp if f"`amp.{n}`" not in text and f"`{n}`" not in text] == []


def test_every_name_in_the_tables_of_python_exists(cells: Cells) -> None:
    named = [
        name
        for row in cells("python.md")
        if row[0] != "name"
        for name in row[0].split(", ")
    ]
    assert sorted(named) == sorted(torch.openreg.__all__)


def test_every_name_of_testing_is_named(cells: Cells, page: Page) -> None:
    named = [row[0] for row in cells("testing_your_library.md")]
    assert [n for n in torch_openreg.testing.__all__ if n not in named] == []
    fixtures = [
        name for name in vars(pytest_openreg) if re.fullmatch(r"openreg_\w+", name)
    ]
    assert len(fixtures) == 6
    assert [name for name in fixtures if name not in named] == []
    options = re.findall(r'"(--openreg-[\w-]+)"', inspect.getsource(pytest_openreg))
    text = page("testing_your_library.md")
    assert [name for name in options if f"`{name}" not in text] == []


def test_every_environment_variable_is_named(cells: Cells) -> None:
    packages = ROOT / "packages"
    files = [*packages.glob("*/csrc/**/*.cpp"), *packages.glob("*/src/**/*.py")]
    read = {
        name
        for file in files
        for name in re.findall(
            r"\"(OPENREG_[A-Z0-9_]+)\"", file.read_text(encoding="utf-8")
        )
    }
    assert "OPENREG_DEVICE_COUNT" in read
    rows = [row for row in cells("configuration.md") if row[0] != "variable"]
    assert {row[0] for row in rows} == read


def test_defaults_of_settings_are_true(cells: Cells) -> None:
    table = {row[0]: row[1] for row in cells("configuration.md")}
    for setting in openreg_runtime.settings():
        assert setting.name in table
        if setting.name == "OPENREG_DEVICE_MEMORY":
            assert table[setting.name].startswith("16GiB, or [less on a small machine]")
        elif setting.source == "default":
            assert table[setting.name] == setting.value


def test_every_policy_of_autocast_is_explained(cells: Cells) -> None:
    explained = {row[0] for row in cells("amp.md")} - {"policy"}
    assert explained == {policy for _, policy in openreg_amp.rules()}


def test_statistics_that_are_named_exist(cells: Cells) -> None:
    torch.openreg.init()
    known = {key.partition(".")[0] for key in torch.openreg.memory_stats()}
    named = {
        name
        for row in cells("memory.md")
        if row[0] != "key"
        for name in row[0].split(", ")
    }
    assert len(named) > 10
    assert named <= known
