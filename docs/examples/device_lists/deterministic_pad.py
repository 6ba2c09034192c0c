# SPDX-License-Identifier: BSD-3-Clause
"""Padding with a deterministic gradient."""

# part: Layers and functions
# place: torch/nn/functional.py: pad
# asks: input.is_cuda or input.is_xpu
# means: `torch.use_deterministic_algorithms(True)` selects another formula for
#   `replicate` on CUDA and XPU only. A backend whose kernel adds in no fixed order must
#   raise PyTorch's error itself. This device runs the CPU kernel, which is
#   deterministic
# noticed: nothing
# way: closed

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Calls(TorchDispatchMode):
    """Prints the operators that PyTorch calls."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        print(func)
        return func(*args, **(kwargs or {}))


torch.use_deterministic_algorithms(True)
x = torch.ones(1, 1, 3, 3, device="openreg")
with Calls():
    torch.nn.functional.pad(x, (1, 1, 1, 1), mode="replicate")
# prints: aten.replication_pad2d.default
