# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the tests of the demonstration and the benchmarks."""

from __future__ import annotations

import pytest
import torch

# Set before the first backward pass of the process. It keeps the CPU's sums in one
# order, so that results can be compared exactly.
torch.set_num_threads(1)


@pytest.fixture
def device() -> str:
    """The simulated accelerator."""
    return "openreg"
