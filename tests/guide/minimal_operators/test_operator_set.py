# SPDX-License-Identifier: BSD-3-Clause
"""docs/operator_set.md is current for the skeleton, this device and this torch."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from support.programs import ROOT

PAGE = ROOT / "docs" / "operator_set.md"
SKELETON = ROOT / "examples" / "minimal_backend"


def rows() -> list[list[str]]:
    """Returns the cells of the operator rows of both tables."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    found = [line for line in lines if "| `PrivateUse1` |" in line]
    return [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in found
    ]


def test_table_has_the_operators_of_the_skeleton(load_tool) -> None:
    names = [row[0].strip("`") for row in rows()]
    assert sorted(names) == sorted(load_tool("operator_set").operators())


def test_each_operator_stops_a_program() -> None:
    for name, _, _, stops, error, *_ in rows():
        assert stops != "nothing", name
        assert error, name


@pytest.mark.parametrize("operator", ["view", "_copy_from", "abs.out"])
def test_removed_registration_is_found(
    load_tool, tmp_path: Path, operator: str
) -> None:
    tool = load_tool("operator_set")
    tool.SKELETON = tmp_path / "skeleton"
    shutil.copytree(SKELETON, tool.SKELETON, ignore=shutil.ignore_patterns("build"))
    removed = 0
    for path in (tool.SKELETON / "csrc").glob("*.cpp"):
        text = path.read_text(encoding="utf-8")
        line = rf'^ *m\.impl\("{re.escape(operator)}", (?!torch::).*\n'
        text, count = re.subn(line, "", text, flags=re.MULTILINE)
        path.write_text(text, encoding="utf-8")
        removed += count
    assert removed == 1
    with pytest.raises(ValueError, match=f"differ in {re.escape(operator)}$"):
        tool.page()


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_page_is_current(load_tool) -> None:
    tool = load_tool("operator_set")
    assert tool.PAGE.read_text(encoding="utf-8") == tool.page()
