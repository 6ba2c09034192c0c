# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the tests of torch_openreg: a clean device state, fresh interpreters."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterator

import pytest
import torch

from support.programs import Ended, Program, run, variables

# Set before the first backward pass, because the device's autograd thread keeps the
# number from its start, also for tests of other folders. With one thread a kernel
# always sums in the same order.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def device_state_is_kept() -> Iterator[None]:
    """Fails a test that leaves a different device or stream current."""
    before = [torch.openreg.current_device(), torch.openreg.current_stream()]
    yield
    after = [torch.openreg.current_device(), torch.openreg.current_stream()]
    torch.openreg.set_device(0)
    torch.openreg.set_stream(torch.openreg.default_stream(0))
    assert after == before


@pytest.fixture
def fresh_compiler() -> Iterator[None]:
    """Resets the compiler."""
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.fixture
def device() -> str:
    """The simulated accelerator."""
    return "openreg"


@pytest.fixture
def interpreter(fork: Program) -> Program:
    """Runs source after ``import torch``; keyword arguments are its environment."""

    def start(source: str, **environment: str) -> Ended:
        return fork(
            source=textwrap.dedent(source), environment=variables(**environment)
        )

    return start


@pytest.fixture
def fresh_interpreter() -> Program:
    """Runs source like ``interpreter``, before anything is imported."""

    def start(source: str, **environment: str) -> Ended:
        command = (sys.executable, "-c", textwrap.dedent(source))
        return run(*command, environment=variables(**environment))

    return start


@pytest.fixture
def output(interpreter: Program) -> Callable[..., str]:
    """Runs source like ``interpreter``; it must succeed. Returns what it prints."""

    def start(source: str, **environment: str) -> str:
        result = interpreter(source, **environment)
        assert result.returncode == 0, result.stderr
        return result.stdout.strip()

    return start
