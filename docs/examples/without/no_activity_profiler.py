# SPDX-License-Identifier: BSD-3-Clause
"""torch.profiler reports device kernels and their times."""

import torch
from torch.profiler import ProfilerActivity, profile

x = torch.ones(1000, device="openreg")
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.OPENREG]) as result:
    x.sum().item()
averages = result.key_averages()
print([each.key for each in averages if each.self_device_time_total > 0])
# prints: ['aten::sum', 'sum_kernel']
# without it: []
