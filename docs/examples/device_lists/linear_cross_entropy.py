# SPDX-License-Identifier: BSD-3-Clause
"""The chunked loss over a vocabulary."""

# part: Layers and functions
# place: torch/nn/modules/linear_cross_entropy_options.py:
#   LinearCrossEntropyOptions._resolve_auto_acc_dtype
# asks: if device.type == "cpu": return torch.float32
# means: with the default `LinearCrossEntropyOptions()`, float16 and bfloat16 sums stay
#   in that dtype instead of float32. Loss and gradients are less exact than on the CPU
#   and on CUDA
# noticed: nothing
# way: open `LinearCrossEntropyOptions(acc_dtype=torch.float32, acc_policy="accurate",
#   chunking_method="aspect_ratio")`, as on the CPU

import torch
from torch.nn.functional import linear_cross_entropy
from torch.nn.modules.linear_cross_entropy_options import LinearCrossEntropyOptions

torch.manual_seed(0)
x, weight = torch.randn(64, 32).bfloat16(), torch.randn(256, 32).bfloat16()
target = torch.randint(256, (64,))
chosen = LinearCrossEntropyOptions(
    acc_dtype=torch.float32, acc_policy="accurate", chunking_method="aspect_ratio"
)
for options in (LinearCrossEntropyOptions(), chosen):
    loss = linear_cross_entropy(x, weight, target, options=options)
    on_device = linear_cross_entropy(
        x.to("openreg"), weight.to("openreg"), target.to("openreg"), options=options
    )
    print(loss.item(), on_device.item())
# prints: 17.625 17.5
# prints: 17.625 17.625
