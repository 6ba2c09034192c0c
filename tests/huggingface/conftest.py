# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the tests with transformers, which are there when transformers is."""

from __future__ import annotations

import importlib.util

import pytest
import torch

# Where it is not installed, nothing is collected, which fails a run of this folder.
if importlib.util.find_spec("transformers") is None:
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
