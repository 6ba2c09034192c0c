# SPDX-License-Identifier: BSD-3-Clause
"""One thread, and a check that no program leaves a mode of PyTorch's switched on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

# Before the first backward pass: the device's autograd thread keeps the number that
# holds when it starts. With one thread a kernel sums in one order.
torch.set_num_threads(1)


def _modes() -> dict[str, object]:
    return {
        "grad mode": torch.is_grad_enabled(),
        "inference mode": torch.is_inference_mode_enabled(),
        "anomaly mode": torch.is_anomaly_enabled(),
        "default dtype": torch.get_default_dtype(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "current device": torch.accelerator.current_device_index(),
        "current stream": torch.accelerator.current_stream(),
        "swap": torch.__future__.get_swap_module_params_on_conversion(),
        "overwrite": torch.__future__.get_overwrite_module_params_on_conversion(),
    }


@pytest.fixture(autouse=True)
def modes_are_kept() -> Iterator[None]:
    """Fails a test that leaves a mode, device or stream other than it found."""
    before = _modes()
    yield
    assert _modes() == before
