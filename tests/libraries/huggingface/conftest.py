# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the tests with transformers, which are there when it is installed."""

from __future__ import annotations

import importlib.util

import pytest
import torch

# Without them nothing is collected, which fails a run of this folder alone.
if not all(importlib.util.find_spec(name) for name in ("accelerate", "transformers")):
    collect_ignore_glob = ["test_*.py"]
else:
    import transformers

    transformers.logging.set_verbosity_error()

# Before the first backward pass of the process: the CPU's sums have one order.
torch.set_num_threads(1)


@pytest.fixture
def device() -> str:
    """The simulated accelerator."""
    return "openreg"
