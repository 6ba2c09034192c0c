# SPDX-License-Identifier: BSD-3-Clause
"""Padding whose gradient is to be deterministic."""

# part: Layers and functions
# place: torch/nn/functional.py: pad
# asks: input.is_cuda or input.is_xpu
# means: `torch.use_deterministic_algorithms(True)` chooses another formula for
#   `replicate` on CUDA and XPU only. A backend whose kernel adds in any order has to
#   raise PyTorch's error itself; here the kernel is the CPU's, which is deterministic
# noticed: nothing
# way: closed

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Calls(TorchDispatchMode):
    """Prints what PyTorch calls."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        print(func)
        return func(*args, **(kwargs or {}))


torch.use_deterministic_algorithms(True)
x = torch.ones(1, 1, 3, 3, device="openreg")
with Calls():
    torch.nn.functional.pad(x, (1, 1, 1, 1), mode="replicate")
# prints: aten.replication_pad2d.default
