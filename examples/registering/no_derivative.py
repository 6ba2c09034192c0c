# SPDX-License-Identifier: BSD-3-Clause
"""Uses no_derivative.cpp: an operator whose backward raises an error."""

from pathlib import Path

import torch

# [docs: library]
torch.ops.load_library(Path(__file__).parent / "build" / "no_derivative.so")
# [docs: end]

x = torch.tensor([1.25, 2.5, 3.75], device="openreg", requires_grad=True)
y = torch.ops.demo.custom_round(x)
print(y.tolist() == x.cpu().round().tolist(), y.grad_fn.name())
# prints: True torch::autograd::NotImplemented
# without library: '_OpNamespace' 'demo' object has no attribute 'custom_round'

try:
    y.sum().backward()
except RuntimeError as error:
    print(error)
# prints: derivative for demo::custom_round is not implemented
