# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the tests of torch_openreg: a clean device state, fresh interpreters."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator

import pytest
import torch

# Before the first backward pass: the device's autograd thread keeps the number that
# holds when it starts, also for the tests of other folders. With one thread a kernel
# sums in one order.
torch.set_num_threads(1)

Interpreter = Callable[..., subprocess.CompletedProcess[str]]
Variables = Callable[[dict[str, str]], dict[str, str]]


@pytest.fixture(autouse=True)
def device_state_is_kept() -> Iterator[None]:
    """Fails a test that leaves another device or stream current than it found."""
    before = [torch.openreg.current_device(), torch.openreg.current_stream()]
    yield
    after = [torch.openreg.current_device(), torch.openreg.current_stream()]
    torch.openreg.set_device(0)
    torch.openreg.set_stream(torch.openreg.default_stream(0))
    assert after == before


@pytest.fixture
def interpreter(fork: Interpreter, variables: Variables) -> Interpreter:
    """Runs source after ``import torch``; keyword arguments are its environment."""

    def run(source: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return fork(source=textwrap.dedent(source), environment=variables(environment))

    return run


@pytest.fixture
def fresh_interpreter(variables: Variables) -> Interpreter:
    """Runs source like ``interpreter``, before anything is imported."""

    def run(source: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", textwrap.dedent(source)],
            env=variables(environment),
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )

    return run


@pytest.fixture
def output(interpreter: Interpreter) -> Callable[..., str]:
    """Runs source like ``interpreter``; it must succeed. Returns what it prints."""

    def run(source: str, **environment: str) -> str:
        result = interpreter(source, **environment)
        assert result.returncode == 0, result.stderr
        return result.stdout.strip()

    return run
