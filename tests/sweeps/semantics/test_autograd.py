# SPDX-License-Identifier: BSD-3-Clause
"""Backward passes: accumulation, modes, custom functions, double backward, errors."""

from __future__ import annotations

import pytest
import torch
import torch.utils.checkpoint


def test_gradient_argument_of_another_device_is_refused() -> None:
    # CUDA: validate_outputs_impl in torch/csrc/autograd/engine.cpp, which moves a
    # gradient of no dimensions and refuses others.
    x = torch.ones(2, device="openreg", requires_grad=True)
    expected = "invalid gradient at index 0 - expected device openreg:0 but got cpu"
    with pytest.raises(RuntimeError, match=expected):
        (x * 2).backward(torch.ones(2))
    x.sum().backward(torch.tensor(3.0))
    assert x.grad.tolist() == [3, 3]
