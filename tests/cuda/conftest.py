# SPDX-License-Identifier: BSD-3-Clause
"""Tests of openreg-cuda, in a process whose CUDA devices are simulated."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterator

import pytest

if os.environ.get("OPENREG_DEVICE") != "cuda":
    raise pytest.UsageError("tests/cuda needs OPENREG_DEVICE=cuda in the environment")

import torch

import openreg_cuda
from support.programs import Program, run, variables

torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def started() -> None:
    """Starts the devices, which warns once."""
    with pytest.warns(openreg_cuda.SimulationWarning, match="CUDA is simulated"):
        torch.cuda.init()


@pytest.fixture(autouse=True)
def device_state_is_kept() -> Iterator[None]:
    """Fails a test that leaves a different device or stream current."""
    yield
    after = [torch.cuda.current_device(), torch.cuda.current_stream()]
    torch.cuda.set_stream(torch.cuda.default_stream(0))
    assert after == [0, torch.cuda.default_stream(0)]
    assert torch.cuda.get_sync_debug_mode() == 0


@pytest.fixture
def interpreter() -> Program:
    """Runs source in a new interpreter; keyword arguments are its environment."""
    return lambda source, **environment: run(
        *(sys.executable, "-c", textwrap.dedent(source)),
        environment=variables(**{"OPENREG_DEVICE": "cuda", **environment}),
    )
