# SPDX-License-Identifier: BSD-3-Clause
"""A convolution of fake tensors has the strides of the real one."""

import torch
from torch._subclasses import FakeTensorMode
from torch.nn.functional import conv2d

with FakeTensorMode() as mode:
    x = torch.ones(1, 8, 8, 8, device="openreg").to(memory_format=torch.channels_last)
    fake = conv2d(x, torch.ones(8, 8, 1, 1, device="openreg"))
x = torch.ones(1, 8, 8, 8, device="openreg").to(memory_format=torch.channels_last)
real = conv2d(x, torch.ones(8, 8, 1, 1, device="openreg"))
print(f"fake: {tuple(fake.stride())}, real: {real.stride()}")
# prints: fake: (512, 1, 64, 8), real: (512, 1, 64, 8)
# without it: fake: (512, 64, 8, 1), real: (512, 1, 64, 8)
