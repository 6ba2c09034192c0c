# SPDX-License-Identifier: BSD-3-Clause
"""The devices that the profiler accepts."""

# part: Tools
# place: torch/autograd/profiler.py: profile.__init__
# asks: _get_privateuse1_backend_name()
# means: the profilers accept the device by its name, but report device times only if a
#   profiler is registered
# noticed: nothing
# way: mechanism activity_profiler

import torch
from torch.profiler import ProfilerActivity, profile

with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as result:
    torch.ones(2, device="openreg") + 1
print(sum(event.self_device_time_total for event in result.key_averages()) > 0)
# prints: True
# without it: False
