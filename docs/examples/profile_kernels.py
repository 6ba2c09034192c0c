# SPDX-License-Identifier: BSD-3-Clause
"""Device kernels and copies in a profile."""

import torch
from torch.profiler import ProfilerActivity, profile, record_function

x = torch.rand(300, 300, device="openreg")
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.OPENREG]) as result:
    with record_function("two products"):
        y = torch.relu(x @ x) @ x
    y.cpu()
rows = [row for row in result.key_averages() if row.self_device_time_total > 0]
for row in sorted(rows, key=lambda row: (row.device_type.name, row.key)):
    print(f"{row.device_type.name:<8} {row.count} {row.key}")
# prints: CPU      1 aten::copy_
# prints: CPU      2 aten::mm
# prints: CPU      1 aten::relu
# prints: OPENREG  1 Memcpy DtoH (Device -> Pageable)
# prints: OPENREG  1 clamp_min_kernel
# prints: OPENREG  2 mm_kernel
# prints: OPENREG  1 two products
