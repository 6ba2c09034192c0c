# SPDX-License-Identifier: BSD-3-Clause
"""A custom autograd function under autocast."""

# part: Mixed precision, gradients and optimizers
# place: torch/cuda/amp/autocast_mode.py: custom_fwd
# asks: device_type="cuda"
# means: `torch.cuda.amp.custom_fwd` does not cast arguments on the device
# noticed: a warning
# way: open `torch.amp.custom_fwd(device_type="openreg")`

import torch


def multiply(decorator):
    """Returns a function whose forward the decorator wraps."""

    class Multiply(torch.autograd.Function):
        @staticmethod
        @decorator
        def forward(_, x):
            return x * 2

    return Multiply.apply


x = torch.ones(1, device="openreg", dtype=torch.bfloat16)
older = torch.cuda.amp.custom_fwd(cast_inputs=torch.float32)
# warns: `torch.cuda.amp.custom_fwd(args...)` is deprecated.
newer = torch.amp.custom_fwd(device_type="openreg", cast_inputs=torch.float32)
with torch.autocast("openreg", dtype=torch.bfloat16):
    print(multiply(older)(x).dtype, multiply(newer)(x).dtype)
# prints: torch.bfloat16 torch.float32
