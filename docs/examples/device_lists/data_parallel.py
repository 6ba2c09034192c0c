# SPDX-License-Identifier: BSD-3-Clause
"""A model on two devices in one process."""

# part: Layers and functions
# place: torch/nn/parallel/comm.py: scatter
# asks: torch._C._scatter
# means: `torch.nn.DataParallel` finds the devices, but copies with functions of the
#   CUDA library
# noticed: an error
# way: closed

import torch

model = torch.nn.Linear(2, 2).to("openreg")
try:
    torch.nn.DataParallel(model)(torch.ones(4, 2, device="openreg"))
except AttributeError as error:
    print(error)
# prints: module 'torch._C' has no attribute '_scatter'
