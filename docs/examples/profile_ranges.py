# SPDX-License-Identifier: BSD-3-Clause
"""Profiler ranges that the program names."""

import torch
from torch.openreg.profiler import mark, range_pop, range_push
from torch.profiler import ProfilerActivity, profile

x = torch.rand(100, device="openreg")
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.OPENREG]) as result:
    print(range_push("forward"), range_push("layer"))
    # prints: 0 1
    x = x.exp()
    mark("no work here")
    print(range_pop(), range_pop(), range_pop())
    # prints: 1 0 -1
on_device = [row for row in result.key_averages() if row.device_type.name == "OPENREG"]
print(*sorted(row.key for row in on_device))
# prints: exp_kernel forward layer
