# SPDX-License-Identifier: BSD-3-Clause
"""Compiled code drops activations and draws the same numbers again."""

import torch
from torch.nn.functional import dropout
from torch.utils.checkpoint import checkpoint


@torch.compile(backend="aot_eager")
def step(x: torch.Tensor) -> torch.Tensor:
    """Computes the function twice: in the forward and in the backward pass."""
    return checkpoint(lambda x: dropout(x).sin(), x, use_reentrant=False)


x = torch.ones(100, device="openreg", requires_grad=True)
y = step(x)
y.sum().backward()
print((x.grad != 0).equal(y != 0))
# prints: True
# without it: Backend not supported for openreg
