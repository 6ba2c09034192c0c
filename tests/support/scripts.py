# SPDX-License-Identifier: BSD-3-Clause
"""Programs and tools of the repository, loaded as modules."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]

Load = Callable[[str], ModuleType]


@pytest.fixture
def load_program(monkeypatch: pytest.MonkeyPatch) -> Load:
    """Loads a program of the repository, such as ``examples/x.py``, as a module."""

    def load(path: str) -> ModuleType:
        monkeypatch.syspath_prepend(ROOT / Path(path).parent)  # as Python does
        name = Path(path).stem
        spec = importlib.util.spec_from_file_location(name, ROOT / path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture
def load_tool(load_program: Load) -> Load:
    """Loads a script of tools/ by its name."""
    return lambda name: load_program(f"tools/{name}.py")
