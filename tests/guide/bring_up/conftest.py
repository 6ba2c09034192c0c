# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures for the tests of examples/minimal_backend."""

from __future__ import annotations

from importlib import metadata
from types import ModuleType

import pytest

from support.backends import Environment
from support.programs import Load


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    installed = {each.name for each in metadata.distributions()}
    assert not installed & {"openreg-aten", "openreg-amp", "torch-openreg"}
    return Environment(tmp_path_factory.mktemp("environment"))


@pytest.fixture
def rename(load_program: Load) -> ModuleType:
    """The program examples/minimal_backend/rename.py, as a module."""
    return load_program("examples/minimal_backend/rename.py")
