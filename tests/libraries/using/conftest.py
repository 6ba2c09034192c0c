# SPDX-License-Identifier: BSD-3-Clause
"""Runs programs of other libraries, each in a separate process."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Launch = Run

# Without the libraries nothing is collected, so a run of only this folder fails.
if importlib.util.find_spec("transformers") is None:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a file of ``examples``, or source with ``-c``, without the network."""

    def call(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        variables = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith("ACCELERATE_")
        }
        variables |= {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"} | environment
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env=variables,
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )

    return call


@pytest.fixture
def launch(run: Run) -> Launch:
    """Runs a program as :func:`run` does, by torchrun on two ranks."""

    def call(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        torchrun = ("-m", "torch.distributed.run", "--standalone")
        return run(*torchrun, "--nproc-per-node=2", *arguments, **environment)

    return call
