# SPDX-License-Identifier: BSD-3-Clause
"""The older profiler records events on device streams."""

import torch
from torch.autograd import profiler

with profiler.profile(use_device="openreg") as profile:
    torch.ones(512, 512, device="openreg").exp()
(exp,) = (event for event in profile.key_averages() if event.key == "aten::exp")
print(exp.device_time > 0)
# prints: True
# without it: PrivateUse1 used in profiler but not enabled.
