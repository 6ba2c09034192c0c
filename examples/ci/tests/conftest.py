# SPDX-License-Identifier: BSD-3-Clause
"""A device fixture: the CPU and, if it is installed, openreg."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture(params=["cpu", "openreg"])
def device(request: pytest.FixtureRequest) -> torch.device:
    """Returns the device to test on."""
    if request.param == "openreg":
        accelerator = torch.accelerator.current_accelerator()
        if accelerator is None or accelerator.type != "openreg":
            pytest.skip("torch-openreg is not installed")
    return torch.device(request.param)
