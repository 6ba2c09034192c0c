# SPDX-License-Identifier: BSD-3-Clause
"""Inductor's code generators."""

# part: Compilers
# place: torch/_inductor/utils.py: GPU_TYPES
# asks: ["cuda", "mps", "xpu", "mtia"]
# means: `torch.compile` has no code generator for the device. Even with one, passes
#   that check `is_gpu` skip the device
# noticed: an error
# way: mechanism inductor

import torch
from torch._inductor.utils import is_gpu

print(is_gpu("openreg"))
# prints: False
x = torch.eye(2, device="openreg")
print(torch.compile(torch.mm)(x, x).trace().item())
# prints: 2.0
# without it: KeyError: 'openreg'
