# SPDX-License-Identifier: BSD-3-Clause
"""Activation checkpointing in compiled programs."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint


@pytest.mark.timeout(300)
def test_the_backward_pass_drops_the_elements_of_its_forward_pass() -> None:
    torch.compiler.reset()
    weight = torch.ones(64, device="openreg", requires_grad=True)

    def block(weight: Tensor) -> Tensor:
        return torch.nn.functional.dropout(weight.sin(), 0.3).cos()

    @torch.compile(fullgraph=True)
    def run(weight: Tensor) -> Tensor:
        return checkpoint(block, weight, use_reentrant=False)

    dropped = []
    for _ in range(4):
        out = run(weight)
        dropped.append((out == 1).tolist())
        (gradient,) = torch.autograd.grad(out.sum(), weight)
        assert (gradient == 0).tolist() == dropped[-1]
    assert dropped[0] != dropped[1]
    first, second = run(weight), run(weight)
    for out in (first, second):  # not in the order of their graphs' making
        (gradient,) = torch.autograd.grad(out.sum(), weight)
        assert (gradient == 0).tolist() == (out == 1).tolist()
