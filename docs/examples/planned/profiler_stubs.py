# SPDX-License-Identifier: BSD-3-Clause
"""The older profiler marks times on the device's streams."""

import torch
from torch.autograd import profiler

with profiler.profile(use_device="openreg", use_kineto=False):
    print(torch.ones(2, device="openreg").sum().item())
# prints: 2.0
# warns: PrivateUse1 used in profiler but not enabled.
