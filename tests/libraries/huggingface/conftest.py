# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the tests with transformers, which run if it is installed."""

from __future__ import annotations

import importlib.util

import pytest
import torch

# Without them nothing is collected, so a run of only this folder fails.
if not all(importlib.util.find_spec(name) for name in ("accelerate", "transformers")):
    collect_ignore_glob = ["test_*.py"]
else:
    import transformers

    transformers.logging.set_verbosity_error()

# Set before the first backward pass of the process, for one order of the CPU's sums.
torch.set_num_threads(1)


@pytest.fixture
def device() -> str:
    """The simulated accelerator."""
    return "openreg"
