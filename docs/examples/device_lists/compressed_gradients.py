# SPDX-License-Identifier: BSD-3-Clause
"""Gradients sent in lower precision."""

# part: Distributed
# place: torch/distributed/algorithms/_comm_hooks/default_hooks.py: _decompress
# asks: grad.device.type == "privateuse1"
# means: no device type has this name, so PyTorch looks up the device module by the
#   device name. The module must have `current_stream`
# noticed: an error
# way: mechanism device_module

import torch
from torch.distributed.algorithms._comm_hooks.default_hooks import (
    LowPrecisionState,
    _decompress,
)

state = LowPrecisionState.__new__(LowPrecisionState)
state.parameter_type = torch.float32
gradient = torch.ones(2, device="openreg", dtype=torch.bfloat16)
_decompress(state, gradient)
print(gradient.dtype)
# prints: torch.float32
# without it: No module named 'torch.openreg'
