# SPDX-License-Identifier: BSD-3-Clause
"""Reads expected_failures.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any


def expected_failures() -> dict[str, dict[str, Any]]:
    """Returns each test that does not pass, with its cause."""
    causes = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
    return {name: cause for cause in causes.values() for name in cause["tests"]}
