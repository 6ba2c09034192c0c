# SPDX-License-Identifier: BSD-3-Clause
"""tools/interfaces.py: the tables have every method of torch's headers, and no more."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import ModuleType

import pytest

from support.programs import Load


@pytest.fixture
def tool(load_tool: Load) -> ModuleType:
    return load_tool("interfaces")


def test_page_is_current(tool: ModuleType) -> None:
    assert tool.PAGE.read_text(encoding="utf-8") == tool.page()


def test_every_virtual_method_of_the_headers_is_in_the_tables(
    tool: ModuleType, cells: Callable[[str], list[list[str]]]
) -> None:
    # Found with a different method than the tool's: line by line.
    named = {row[0] for row in cells("interfaces.md")} - {"method"}
    declared = set()
    for interface in tool.INTERFACES:
        for header, name in interface.bases:
            text = (tool.INCLUDE / header).read_text(encoding="utf-8")
            body = text.partition(f" {name} ")[2].partition("\n};")[0]
            found = re.findall(r"^  virtual [^~;{]*?(\w+)\(", body, re.M)
            assert found or "override" in body
            declared |= set(found)
    assert declared == named
    assert len(declared) > 50


def test_pure_noexcept_and_defaults_are_the_headers(tool: ModuleType) -> None:
    guard, hooks, allocator, generator = map(tool.merged, tool.INTERFACES)
    assert guard["exchangeDevice"].pure
    assert guard["uncheckedSetDevice"].noexcept
    assert guard["uncheckedSetDevice"].pure
    assert guard["destroyEvent"] == ("destroyEvent", False, "does nothing", True)
    assert guard["record"].default == "error: Backend doesn't support events."
    assert guard["isStreamCapturing"].default == "returns `false`"
    assert hooks["init"].default == "does nothing"  # the base class has an error
    assert not hooks["hasPrimaryContext"].pure  # the base class is pure
    assert allocator["raw_deleter"].default == "returns `nullptr`"
    assert generator["graphsafe_get_state"].default == "PyTorch's"


@pytest.mark.parametrize("index", range(4), ids=["guard", "hooks", "allocator", "rng"])
def test_each_row_is_the_text_of_its_header(tool: ModuleType, index: int) -> None:
    # Found with a different method than the tool's: by the text between virtual
    # methods.
    interface = tool.INTERFACES[index]
    declared: dict[str, str] = {}
    for header, name in interface.bases:
        text = (tool.INCLUDE / header).read_text(encoding="utf-8")
        text = re.sub(r"//.*", "", re.sub(r"/\*.*?\*/", "", text, flags=re.S))
        text = text.replace("\n#", "\n;#")
        body = " ".join(text.partition(f" {name} ")[2].partition("\n};")[0].split())
        for found in re.finditer(r"\b(\w+)\((?:[^()]|\([^()]*\))*\) ?", body):
            after = body[found.end() :]
            specifiers = re.match(r"(?:const ?|noexcept ?|override ?)*", after)[0]
            is_virtual = "virtual" in re.split(r"[;{}]", body[: found.start()])[-1]
            if is_virtual or "override" in specifiers:
                declared.setdefault(found[1], after)
    page = tool.PAGE.read_text(encoding="utf-8")
    table = page.partition(f"## {interface.title}\n")[2].partition("\n## ")[0]
    lines = re.findall(r"^\| `(\w+)` \|(.*)\|$", table, re.M)
    rows = {name: [name, *map(str.strip, rest.split("|"))] for name, rest in lines}
    assert rows.keys() == interface.notes.keys()
    for name in rows:
        after = declared[name]
        _, needed, _, default, noexcept, *_ = rows[name]
        head = re.match(r"[^;{]*", after)[0]
        assert (noexcept == "yes") == ("noexcept" in head), name
        assert (needed == "pure virtual") == ("= 0" in head), name
        body = after[len(head) :].partition(" virtual ")[0].replace('" "', "")
        if "= 0" in head:
            assert default == "", name
        elif default == "does nothing":
            assert re.match(r"\{ ?\}", body), name
        elif default.startswith("returns "):
            assert f"return {default.split('`')[1]};" in body, name
        elif "You should register PrivateUse1HooksInterface" in default:
            assert "FAIL_PRIVATEUSE1HOOKS_FUNC" in body, name
        elif default.startswith("error: "):
            assert default.removeprefix("error: ") in body, name
        else:
            assert (default, body[0]) == ("PyTorch's", ";"), name


def test_method_without_an_entry_is_an_error(tool: ModuleType) -> None:
    guard = tool.INTERFACES[0]
    notes = {name: note for name, note in guard.notes.items() if name != "block"}
    with pytest.raises(ValueError, match=r"Guard: .* lack block"):
        tool.part(guard._replace(notes=notes))
    with pytest.raises(ValueError, match=r"Guard: .* lack new"):
        tool.part(guard._replace(notes={**guard.notes, "new": ("", "")}))
