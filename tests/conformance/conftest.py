# SPDX-License-Identifier: BSD-3-Clause
"""Runs the command line in a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest


class Ended(NamedTuple):
    """The result of a command."""

    status: int
    output: str
    errors: str

    def report(self, path: Path) -> dict[str, Any]:
        assert self.status in (0, 1), self.errors
        report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return report


Command = Callable[..., Ended]


@pytest.fixture
def command() -> Command:
    """Runs openreg-conformance with arguments and variables of the environment."""

    def run(*arguments: str | Path, **variables: str) -> Ended:
        done = subprocess.run(
            [sys.executable, "-m", "openreg_conformance", *map(str, arguments)],
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def report() -> dict[str, Any]:
    """A report of a device with one failure, one skipped case and one that passed."""

    def case(name: str, **facts: Any) -> dict[str, Any]:
        facts = {"mechanism": "operators", "subject": "", "users": 0.5, **facts}
        return {"name": name, "title": "It works.", "seconds": 0.5, **facts}

    return {
        "format": 1,
        "device": "acme",
        "device_name": "Acme & <Sons>",
        "level": "smoke",
        "torch": "2.13.0",
        "python": "3.11.7",
        "seed": 0,
        "seconds": 2.0,
        "cases": [
            case("device/copy", outcome="passed", made=2, passed=2, same_bits=1),
            case(
                "rng/seeds", outcome="skipped", message="the CPU is not an accelerator"
            ),
            case(
                "operators/add/float32/forward",
                subject="add",
                outcome="failed",
                made=3,
                passed=1,
                message="sample 0: </script> differs",
                program="import torch\n",
            ),
        ],
    }
