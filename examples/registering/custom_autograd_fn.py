# SPDX-License-Identifier: BSD-3-Clause
"""Uses custom_autograd_fn.cpp: operators whose kernel is an autograd function."""

from pathlib import Path

import torch

# [docs: library]
torch.ops.load_library(Path(__file__).parent / "build" / "custom_autograd_fn.so")
# [docs: end]

x = torch.tensor([1.0, 2.0], device="openreg", requires_grad=True)
for op in (
    torch.ops.openreg.custom_autograd_fn_aliasing,
    torch.ops.openreg.custom_autograd_fn_returns_self,
):
    y = op(x)
    (grad,) = torch.autograd.grad(y.sum(), x)
    print(y.data_ptr() == x.data_ptr(), y.tolist(), grad.tolist())
# prints: True [1.0, 2.0] [0.5, 0.5]
# prints: True [1.0, 2.0] [0.5, 0.5]
# without library: 'openreg' object has no attribute 'custom_autograd_fn_aliasing'

# Inference mode skips autograd, so the operator has no kernel.
with torch.inference_mode():
    try:
        torch.ops.openreg.custom_autograd_fn_aliasing(x)
    except NotImplementedError as error:
        print(str(error).partition(" on device")[0])
# prints: Could not run 'openreg::custom_autograd_fn_aliasing'
