# SPDX-License-Identifier: BSD-3-Clause
"""DLPack exchange: capsules work, and torch.from_dlpack raises an error."""

import torch
from torch.utils.dlpack import from_dlpack, to_dlpack

x = torch.ones(3, device="openreg:1")
y = from_dlpack(to_dlpack(x))
y[0] = 5
print(x)
# prints: tensor([5., 1., 1.], device='openreg:1')

try:
    torch.from_dlpack(x)
except ValueError as error:
    print(error)
# prints: Unknown device type openreg for Dlpack
