# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures that run source in separate interpreters."""

from __future__ import annotations

import sys
import textwrap

import pytest

from support.programs import Program, run, variables


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ignores warnings of PyTorch's modules that compilers import."""
    for item in items:
        if "inductor" in item.path.parts:
            item.add_marker(
                pytest.mark.filterwarnings(r"ignore::DeprecationWarning:torch\..*")
            )


SECONDS = 280  # for importing Inductor and compiling on a loaded machine


@pytest.fixture
def run_python() -> Program:
    """Runs source in a fresh interpreter; keyword arguments are its environment."""

    def start(source: str, **environment: str):
        command = (sys.executable, "-c", textwrap.dedent(source))
        return run(*command, environment=variables(**environment), seconds=SECONDS)

    return start
