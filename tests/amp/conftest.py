# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the autocast tests."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

import openreg_aten  # noqa: F401  the backend comes before openreg_amp


@pytest.fixture
def device():
    """The device of openreg-aten, which nobody has renamed in this package set."""
    return "privateuseone"


@pytest.fixture
def run_python():
    """Gives a function that runs source in a new interpreter."""

    def run(source: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", textwrap.dedent(source)],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )

    return run
