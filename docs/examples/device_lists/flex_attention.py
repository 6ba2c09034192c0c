# SPDX-License-Identifier: BSD-3-Clause
"""FlexAttention."""

# part: Layers and functions
# place: torch/nn/attention/flex_attention.py: _validate_device
# asks: supported_devices = {"cuda", "cpu", "xpu", "hpu", "mps"}
# means: FlexAttention rejects the device, with or without a compiler
# noticed: an error
# way: mechanism inductor

import torch
from torch.nn.attention.flex_attention import flex_attention

x = torch.ones(1, 1, 16, 16, device="openreg")
try:
    print(flex_attention(x, x, x).sum().item())
except ValueError as error:
    print(str(error)[:66])
# prints: 256.0
# without it: FlexAttention is only supported on CUDA, CPU, HPU, or MPS devices.
