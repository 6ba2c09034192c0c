# SPDX-License-Identifier: BSD-3-Clause
"""Runs the examples that predict a program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples/predict"


def run(*words: str) -> list[str]:
    command = [sys.executable, str(FOLDER / words[0]), *words[1:]]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=140, check=True
    )
    return done.stdout.splitlines()


@pytest.mark.timeout(150)
def test_the_time_of_experts_depends_on_the_routing() -> None:
    even, skewed = run("moe_routing.py")
    assert even.startswith("even: 32 experts, ")
    times = [int(line.split()[-2]) for line in (even, skewed)]
    assert times[1] < 0.8 * times[0]


@pytest.mark.timeout(150)
def test_a_sharded_model_needs_less_memory_per_device() -> None:
    words = ["--layers", "1", "--length", "512", "--ranks", "1", "8"]
    one, eight = run("llama_70b.py", *words)
    sizes = [float(line.partition(" GiB")[0].split()[-1]) for line in (one, eight)]
    assert sizes[1] < 0.5 * sizes[0]
