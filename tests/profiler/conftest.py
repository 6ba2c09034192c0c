# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures for tests of openreg_profiler: traces, and separate programs."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from support.programs import Program, variables

torch.set_num_threads(1)

BOTH = (ProfilerActivity.CPU, ProfilerActivity.OPENREG)
WORK = ("kernel", "gpu_memcpy", "gpu_memset")


class Trace:
    """The events of an exported trace.

    Attributes:
        events: All events of the file.
    """

    def __init__(self, text: str) -> None:
        self.whole = json.loads(text)
        self.events: list[dict[str, Any]] = self.whole["traceEvents"]

    def of(self, *categories: str) -> list[dict[str, Any]]:
        """Returns the complete events of these categories, by their starts."""
        found = [e for e in self.events if e.get("cat") in categories]
        return sorted(found, key=lambda event: (event["ts"], event.get("dur", 0)))

    @property
    def work(self) -> list[dict[str, Any]]:
        """Returns the work of the devices."""
        return self.of(*WORK)

    def names(self) -> list[str]:
        """Returns the names of the devices' work."""
        return [event["name"] for event in self.work]


@pytest.fixture
def trace_of(tmp_path: Path) -> Callable[[profile], Trace]:
    """Exports a profile's trace and reads it."""

    def export(result: profile) -> Trace:
        path = tmp_path / "trace.json"
        result.export_chrome_trace(str(path))
        return Trace(path.read_text(encoding="utf-8"))

    return export


@pytest.fixture
def output(fork: Program) -> Callable[..., str]:
    """Runs source after ``import torch``; it must succeed. Returns what it prints."""

    def start(source: str, **environment: str) -> str:
        result = fork(
            source=textwrap.dedent(source), environment=variables(**environment)
        )
        assert result.returncode == 0, result.stderr
        lines = result.stdout.splitlines()
        return "\n".join(line for line in lines if not line.startswith("USDT:"))

    return start
