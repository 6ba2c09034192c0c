# SPDX-License-Identifier: BSD-3-Clause
"""The page on mechanisms lists the code's, and every failure it quotes is true."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

PROGRAMS = Path(__file__).parents[2] / "docs" / "examples" / "without"
MECHANISMS = torch.openreg.mechanisms()
NAMES = [mechanism.name for mechanism in MECHANISMS]

Page = Callable[[str], str]
Program = Callable[..., subprocess.CompletedProcess[str]]


def said(path: Path, what: str) -> list[str]:
    """Returns what the comments of a program say after ``what``."""
    source = path.read_text(encoding="utf-8")
    return re.findall(rf"^ *# {what}: (.*)$", source, re.MULTILINE)


def test_table_is_that_of_the_code(page: Page) -> None:
    row = re.compile(r"^\| \[`(\w+)`\]\(#(\w+)\) \| `(.*)` \| `(.*)` \|$", re.MULTILINE)
    table = row.findall(page("mechanisms.md"))
    assert table == [(m.name, m.name, m.summary, m.source) for m in MECHANISMS]


def test_every_mechanism_has_a_section_and_a_program(page: Page) -> None:
    text = page("mechanisms.md")
    assert re.findall(r"^### (\w+)$", text, re.MULTILINE) == NAMES
    assert text.count("*When do I need it?*") == len(NAMES)
    programs = re.findall(r"literalinclude} examples/without/no_(\w+)\.py", text)
    assert programs == NAMES
    assert sorted(path.stem for path in PROGRAMS.glob("*.py")) == sorted(
        f"no_{name}" for name in NAMES
    )


@pytest.mark.parametrize("name", NAMES)
def test_program_works_with_the_mechanism(program: Program, name: str) -> None:
    path = PROGRAMS / f"no_{name}.py"
    result = program(path)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == said(path, "prints")


@pytest.mark.parametrize("name", NAMES)
def test_program_fails_as_quoted_without_it(program: Program, name: str) -> None:
    path = PROGRAMS / f"no_{name}.py"
    (failure,) = said(path, "without it")
    assert failure not in said(path, "prints")
    result = program(path, OPENREG_DISABLE=name)
    assert failure in result.stdout + result.stderr
    assert result.returncode in (0, 1)  # a wrong answer or an exception, no crash
