# SPDX-License-Identifier: BSD-3-Clause
"""The state of autocast."""

# part: Mixed precision, gradients and optimizers
# place: torch/csrc/autograd/init.cpp: is_autocast_enabled
# asks: at::kCUDA
# means: without an argument, `torch.is_autocast_enabled()` checks CUDA, and is False
#   inside `torch.autocast("openreg")`
# noticed: nothing
# way: open `torch.is_autocast_enabled("openreg")`

import torch

with torch.autocast("openreg"):
    print(torch.is_autocast_enabled(), torch.is_autocast_enabled("openreg"))
# prints: False True
