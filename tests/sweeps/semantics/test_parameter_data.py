# SPDX-License-Identifier: BSD-3-Clause
"""``p.data = ...``, storages of parameters, and ``swap_tensors``."""

from __future__ import annotations

import pytest
import torch
from torch import nn


def test_gradient_of_another_device_is_refused() -> None:
    # CUDA: the setter of Tensor.grad, check_grad in python_variable.cpp.
    p = nn.Parameter(torch.ones(2, device="openreg"))
    with pytest.raises(RuntimeError, match="assign a gradient with device type 'cpu'"):
        p.grad = torch.ones(2)
