# SPDX-License-Identifier: BSD-3-Clause
"""Mixed precision through the older API."""

# part: Mixed precision, gradients and optimizers
# place: torch/cuda/amp/autocast_mode.py: autocast.__init__
# asks: "cuda", enabled=enabled
# means: `torch.cuda.amp.autocast` casts nothing on the device
# noticed: a warning
# way: open `torch.autocast("openreg")`

import torch

x, weight = torch.ones(2, 2, 2, device="openreg")
with torch.cuda.amp.autocast(dtype=torch.bfloat16):
    # warns: CUDA is not available or torch_xla is imported. Disabling autocast.
    print((x @ weight).dtype)
# prints: torch.float32
with torch.autocast("openreg", dtype=torch.bfloat16):
    print((x @ weight).dtype)
# prints: torch.bfloat16
