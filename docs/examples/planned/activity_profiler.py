# SPDX-License-Identifier: BSD-3-Clause
"""torch.profiler knows the name of the device, and none of its work."""

import torch
from torch.profiler import ProfilerActivity, profile

with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.OPENREG]) as profiler:
    torch.ones(1000, device="openreg").sum().item()
averages = profiler.key_averages()
print(any(average.cpu_time_total > 0 for average in averages))
print(any(average.device_time_total > 0 for average in averages))
# prints: True
# prints: False
