# SPDX-License-Identifier: BSD-3-Clause
"""The pages list all mechanisms of the code, and every failure they show is true."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch

from support.isolation import marked
from support.programs import ROOT, Program

DOCS = ROOT / "docs"
PROGRAMS = DOCS / "examples" / "without"
PLANS = DOCS / "examples" / "planned"
MECHANISMS = torch.openreg.mechanisms()
NAMES = [m.name for m in MECHANISMS if m.state != "planned"]
PLANNED = [m.name for m in MECHANISMS if m.state == "planned"]
# Nothing fails without these, or other parts fail first.
QUIET: set[str] = set()

Page = Callable[[str], str]


def said(path: Path, what: str) -> list[str]:
    """Returns the text after ``what`` in the comments of a program."""
    source = path.read_text(encoding="utf-8")
    return re.findall(rf"^ *# {what}: (.*)$", source, re.MULTILINE)


@pytest.fixture
def tool(load_tool: Callable[[str], ModuleType]) -> ModuleType:
    """Returns tools/mechanisms.py, which writes the table."""
    return load_tool("mechanisms")


def test_table_is_the_one_of_the_code(tool: ModuleType) -> None:
    text = tool.PAGE.read_text(encoding="utf-8")
    assert text == tool.page()
    names = re.findall(r"^\| \[`(\w+)`\]", text, re.MULTILINE)
    assert names == [m.name for m in MECHANISMS]


def test_tool_replaces_the_table_and_nothing_else(
    tool: ModuleType, tmp_path: Path
) -> None:
    current = tool.PAGE.read_text(encoding="utf-8")
    tool.PAGE = tmp_path / "index.md"
    row = next(row for row in current.splitlines(True) if "[`guard`]" in row)
    for other in ("", row.replace("guard.cpp", "moved.cpp"), f"{row}{row}"):
        tool.PAGE.write_text(current.replace(row, other), encoding="utf-8")
        assert tool.page() == current


def test_page_without_a_table_is_an_error(tool: ModuleType, tmp_path: Path) -> None:
    tool.PAGE = tmp_path / "index.md"
    for text, count in (("# Mechanisms\n", 0), (f"{tool.HEAD}\n{tool.HEAD}", 2)):
        tool.PAGE.write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match=f"has {count} tables of mechanisms"):
            tool.page()


def test_every_page_has_its_picture_and_says_what_carries_over(
    tool: ModuleType,
) -> None:
    texts = tool.pages()
    assert texts.keys() == {tool.FOLDER / f"{name}.md" for name in [*NAMES, "index"]}
    for path, text in texts.items():
        assert path.read_text(encoding="utf-8") == text
        if path != tool.PAGE:
            assert text.count("```mermaid") == 1, path
            assert text.count("**For hardware: ") == 1, path
    assert {entry.carries for entry in tool.read().values()} == set(tool.CARRIES)


def test_pictures_name_parts_of_the_sources(tool: ModuleType) -> None:
    files = [
        *(ROOT / "packages").glob("*/csrc/**/*.cpp"),
        *(ROOT / "packages").glob("*/csrc/**/*.h"),
        *(ROOT / "packages").glob("*/src/**/*.py"),
    ]
    code = "".join(file.read_text(encoding="utf-8") for file in files)
    words = {*re.findall(r"\w+", code), *(file.stem for file in files)}
    headers = (ROOT / "packages/openreg-runtime/include/openreg").glob("*.h")
    declared = "".join(header.read_text(encoding="utf-8") for header in headers)
    runtime = set(re.findall(r"\bor[A-Z]\w+", declared))
    for name, entry in tool.read().items():
        ours, calls = entry.calls[2:]
        named = set(re.findall(r"\w+", ours)) - {"at", "native", "py"}
        assert named, name
        assert named <= words, name
        reached = set(re.findall(r"\bor[A-Z]\w+", calls))
        assert reached <= runtime, name
        assert reached or calls.startswith("nothing"), name


def test_page_without_a_place_for_its_picture_is_an_error(
    tool: ModuleType, tmp_path: Path
) -> None:
    tool.FOLDER = tmp_path
    for path in (DOCS / "mechanisms").glob("*.md"):
        shutil.copy(path, tmp_path)
    page = tmp_path / "guard.md"
    text = page.read_text(encoding="utf-8")
    page.write_text(text.replace("<!-- end -->", ""), encoding="utf-8")
    with pytest.raises(ValueError, match=r"guard.md has 0 places for its picture"):
        tool.pages()


def test_mechanism_without_an_entry_is_an_error(
    tool: ModuleType, tmp_path: Path
) -> None:
    table = tool.TABLE.read_text(encoding="utf-8")
    tool.TABLE = tmp_path / "hardware.toml"
    tool.TABLE.write_text(table.replace("[guard]", "[other]"), encoding="utf-8")
    with pytest.raises(ValueError, match="lacks guard, other"):
        tool.pages()
    wrong = table.replace('carries = "copy"', 'carries = "perhaps"', 1)
    tool.TABLE.write_text(wrong, encoding="utf-8")
    with pytest.raises(ValueError, match="has missing or wrong fields"):
        tool.pages()


def test_every_mechanism_has_a_page_and_a_program() -> None:
    pages = {path.stem for path in (DOCS / "mechanisms").glob("*.md")}
    assert pages == {*NAMES, "closed", "index", "new_in_torch", "planned"}
    assert {path.stem for path in PROGRAMS.glob("*.py")} == {f"no_{n}" for n in NAMES}


@pytest.mark.parametrize("mechanism", MECHANISMS[: len(NAMES)], ids=lambda m: m.name)
def test_page_says_when_and_quotes_code_and_program(
    mechanism: torch.openreg.Mechanism, page: Page
) -> None:
    name = mechanism.name
    text = page(f"mechanisms/{name}.md")
    assert text.startswith(f"# {name}\n")
    for part in (f"`{mechanism.summary}`", f"`packages/{mechanism.source}`"):
        assert part in " ".join(text.split())
    assert text.count("*When do I need it?*") == 1
    quoted = re.findall(r"^<!-- quote: (\S+)", text, re.MULTILINE)
    assert f"../../packages/{mechanism.source}" in quoted
    assert quoted[-1] == f"../examples/without/no_{name}.py"


DIFFERENCES = {
    "affine_quantizer": "functions",
    "graph": "graphs",
    "kernel_allocator": "allocations",
    "multiprocessing": "shared memory",
    "process_group": "occl",
}


@pytest.mark.parametrize("name", marked(NAMES, DIFFERENCES))
def test_program_works_with_the_mechanism(program: Program, name: str) -> None:
    path = PROGRAMS / f"no_{name}.py"
    result = program(path)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == said(path, "prints")


@pytest.mark.parametrize(
    "name", marked(NAMES, {"dropout": "random numbers", "storage": "messages"})
)
def test_program_fails_as_quoted_and_shown_without_it(
    program: Program, page: Page, name: str
) -> None:
    path = PROGRAMS / f"no_{name}.py"
    result = program(path, OPENREG_DISABLE=name)
    assert result.returncode in (0, 1)  # a wrong result or an exception, not a crash
    (failure,) = said(path, "without it")
    assert failure not in said(path, "prints")
    assert failure in result.stdout + result.stderr

    (shown,) = re.findall(
        r"^```console\n(.*?)\n```$", page(f"mechanisms/{name}.md"), re.M | re.S
    )
    command, _, printed = shown.partition("\n")
    assert command == f"$ OPENREG_DISABLE={name} python no_{name}.py"
    # The page breaks long lines, and cuts at "...".
    rest = " ".join((result.stdout + result.stderr).split())
    parts = [" ".join(part.split()) for part in printed.split(" ...") if part]
    assert parts
    for part in parts:
        _, found, rest = rest.partition(part)
        assert found == part, rest


def test_every_planned_mechanism_has_a_section_and_a_program(page: Page) -> None:
    text = page("mechanisms/planned.md")
    assert re.findall(r"^## (\w+)$", text, re.MULTILINE) == PLANNED
    flat = " ".join(text.split())
    for m in MECHANISMS[len(NAMES) :]:
        assert f"PyTorch calls it `{m.summary}`. Without it: {m.without}." in flat
    quoted = re.findall(r"quote: \.\./examples/planned/(\w+)\.py", text)
    assert quoted == [name for name in PLANNED if name not in QUIET]
    assert sorted(path.stem for path in PLANS.glob("*.py")) == sorted(quoted)


@pytest.mark.parametrize("name", [name for name in PLANNED if name not in QUIET])
def test_planned_mechanisms_do_not_work_yet(program: Program, name: str) -> None:
    path = PLANS / f"{name}.py"
    result = program(path)
    assert result.stdout.splitlines() == said(path, "prints")
    failures = said(path, "fails")
    assert result.returncode == len(failures), result.stderr
    missing = failures + said(path, "warns")
    assert all(text in result.stderr for text in missing), result.stderr
    assert missing or "False" in result.stdout or "-11" in result.stdout
