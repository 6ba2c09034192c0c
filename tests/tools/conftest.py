# SPDX-License-Identifier: BSD-3-Clause
"""Loads the tools, which are scripts and no package."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def load_tool(monkeypatch):
    """Gives a function from the name of a tool to its module."""
    monkeypatch.syspath_prepend(ROOT / "tools")

    def load(name: str):
        spec = importlib.util.spec_from_file_location(name, ROOT / f"tools/{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load
