# SPDX-License-Identifier: BSD-3-Clause
"""Views and aliases: shared memory, changes, and errors."""

from __future__ import annotations

import pytest
import torch


def test_storage_of_another_device_is_refused() -> None:
    # CUDA: THPVariable_set_ ends in checkSetStorage, aten/src/ATen/native/Resize.h.
    x = torch.ones(2, device="openreg")
    with pytest.raises(RuntimeError, match="device"):
        x.set_(torch.ones(2))
    with pytest.raises(RuntimeError, match="device"):
        x.set_(torch.ones(2).untyped_storage(), 0, (2,))
    assert x.tolist() == [1, 1]
