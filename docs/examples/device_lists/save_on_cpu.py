# SPDX-License-Identifier: BSD-3-Clause
"""Saved tensors that wait for backward in host memory."""

# part: Mixed precision, gradients and optimizers
# place: torch/autograd/graph.py: save_on_cpu.__init__
# asks: device_type: str = "cuda"
# means: `save_on_cpu(pin_memory=True)` allocates unpinned memory, since it checks
#   whether CUDA is available. The copies then wait for the device
# noticed: nothing
# way: open `save_on_cpu(pin_memory=True, device_type="openreg")`

import torch
from torch.autograd.graph import save_on_cpu
from torch.utils._python_dispatch import TorchDispatchMode


class Calls(TorchDispatchMode):
    """Prints whether new memory is pinned."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is torch.ops.aten.empty.memory_format:
            print(kwargs["pin_memory"])
        return func(*args, **(kwargs or {}))


x = torch.ones(2, device="openreg", requires_grad=True)
with Calls(), save_on_cpu(pin_memory=True):
    x.exp()
# prints: False
with Calls(), save_on_cpu(pin_memory=True, device_type="openreg"):
    x.exp()
# prints: True
