# SPDX-License-Identifier: BSD-3-Clause
"""Inductor."""

# part: Compilers
# place: torch/_inductor/utils.py: GPU_TYPES
# asks: ["cuda", "mps", "xpu", "mtia"]
# means: `torch.compile` has no code generator for the device; passes that ask `is_gpu`
#   leave it out also with one
# noticed: an error
# way: planned inductor

import torch
from torch._inductor.utils import is_gpu

print(is_gpu("openreg"))
# prints: False
try:
    torch.compile(torch.relu)(torch.ones(1, device="openreg"))
except Exception as error:
    print(str(error).splitlines()[0])
# prints: KeyError: 'openreg'
