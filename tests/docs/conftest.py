# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the tests of the guide: its pages, and programs in a fresh process."""

from __future__ import annotations

import importlib.util
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

Page = Callable[[str], str]
Program = Callable[..., subprocess.CompletedProcess[str]]
Variables = Callable[[dict[str, str]], dict[str, str]]


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
def program(fork: Program, variables: Variables) -> Program:
    """Runs a Python file in a fresh process; keyword arguments are its environment."""

    def run(path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
        return fork(path=path, environment=variables(environment))

    return run


@pytest.fixture
def load_tool(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Returns a script of tools/ as a module."""
    monkeypatch.syspath_prepend(ROOT / "tools")

    def load(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(name, ROOT / f"tools/{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load
