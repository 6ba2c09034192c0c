# SPDX-License-Identifier: BSD-3-Clause
"""``module.to(device)``: preserved objects and references."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from openreg_conformance.suites.semantics.module_moves import batch


def test_module_on_another_device_than_its_input_is_refused() -> None:
    # CUDA: TensorIterator and the wrappers of its kernels, common_device_check_failure.
    module = nn.Linear(3, 2).to("openreg")
    with pytest.raises(
        RuntimeError, match="Expected all tensors to be on the same dev"
    ):
        module(batch("cpu"))


def test_move_of_a_tensor_that_requires_grad_is_no_leaf() -> None:
    # CUDA: Tensor.to is differentiable, _to_copy in tools/autograd/derivatives.yaml.
    x = torch.ones(2, requires_grad=True)
    moved = x.to("openreg")
    moved.sum().backward()
    assert (moved.is_leaf, moved.grad_fn.name()) == (False, "ToCopyBackward0")
    assert torch.equal(x.grad, torch.ones(2))
