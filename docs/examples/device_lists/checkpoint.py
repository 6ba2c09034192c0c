# SPDX-License-Identifier: BSD-3-Clause
"""Random numbers that a checkpoint draws again in backward."""

# part: Mixed precision, gradients and optimizers
# place: torch/utils/checkpoint.py: _infer_device_type
# asks: "cuda" in device_types_set
# means: `checkpoint` saves the generator state of the first device type among the
#   arguments, through the device module. If there are several types, CUDA is preferred
# noticed: an error
# way: mechanism device_module

import torch
from torch.utils.checkpoint import checkpoint

x = torch.ones(100, device="openreg", requires_grad=True)
y = checkpoint(lambda x: torch.dropout(x, 0.5, True), x, use_reentrant=False)
y.sum().backward()
print(torch.equal(x.grad != 0, y != 0))
# prints: True
# without it: No module named 'torch.openreg'
