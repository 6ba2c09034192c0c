# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the tests of the guide: its pages, and programs in a fresh process."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from support.programs import ROOT, Ended, Program, variables

DOCS = ROOT / "docs"


Page = Callable[[str], str]

COMPILES = re.compile(r"torch\.compile\((?!.*eager)|aoti|_inductor")


def pytest_collection_modifyitems(items: Iterable[pytest.Item]) -> None:
    """Marks tests of programs that a compiler compiles as slow."""
    for item in items:
        if Path(__file__).parent not in item.path.parents or not hasattr(
            item, "callspec"
        ):
            continue
        path = item.callspec.params.get("path")
        if name := item.callspec.params.get("name"):
            path = DOCS / f"examples/without/no_{name}.py"
        if path is None or path.suffix != ".py" or not path.is_file():
            continue
        if COMPILES.search(path.read_text(encoding="utf-8")):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def page() -> Page:
    """Returns the text of a page by its name."""
    return lambda name: (DOCS / name).read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def cells(page: Page) -> Callable[[str], list[list[str]]]:
    """Returns the rows of all tables of a page, each as its cells without backticks."""

    def rows(name: str) -> list[list[str]]:
        lines = [line for line in page(name).splitlines() if line.startswith("| ")]
        return [
            [cell.strip().replace("`", "") for cell in line.strip("|").split("|")]
            for line in lines
            if set(line) - set("|- ")
        ]

    return rows


@pytest.fixture(scope="session")
def program(fork: Program) -> Program:
    """Runs a Python file in a fresh process; keyword arguments are its environment."""

    def run(path: Path, **environment: str) -> Ended:
        return fork(path=path, environment=variables(**environment))

    return run
