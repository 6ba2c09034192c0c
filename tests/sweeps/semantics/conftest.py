# SPDX-License-Identifier: BSD-3-Clause
"""One thread, and a check that programs leave PyTorch's modes as they were."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

# Set before the first backward pass, because the device's autograd thread keeps the
# number from its start. With one thread a kernel always sums in the same order.
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
    """Fails a test that changes a mode, the device or a stream for later tests."""
    before = _modes()
    yield
    assert _modes() == before
