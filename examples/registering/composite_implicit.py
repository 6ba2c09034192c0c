# SPDX-License-Identifier: BSD-3-Clause
"""Uses composite_implicit.cpp: a kernel that replaces a composite kernel."""

from pathlib import Path

import torch

# [docs: library]
torch.ops.load_library(Path(__file__).parent / "build" / "composite_implicit.so")
# [docs: end]

x = torch.tensor([-1.0, 2.0, -3.0], dtype=torch.float64, device="openreg")
x.requires_grad_()
y = x.square()
print(y.detach().cpu().equal(x.detach().cpu().square()), y.grad_fn.name())
# prints: True torch::autograd::CppNode<(anonymous namespace)::Square>
# without library: True PowBackward0

print(torch.autograd.gradcheck(torch.square, x))
# prints: True
