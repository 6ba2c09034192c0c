# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the tests of examples/minimal_backend."""

from __future__ import annotations

import importlib.util
from importlib import metadata
from types import ModuleType

import pytest

from support.backends import SKELETON, Environment


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    installed = {each.name for each in metadata.distributions()}
    assert not installed & {"openreg-aten", "openreg-amp", "torch-openreg"}
    return Environment(tmp_path_factory.mktemp("environment"))


@pytest.fixture(scope="session")
def rename() -> ModuleType:
    """The program examples/minimal_backend/rename.py, as a module."""
    spec = importlib.util.spec_from_file_location("rename", SKELETON / "rename.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
