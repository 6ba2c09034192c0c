# SPDX-License-Identifier: BSD-3-Clause
"""torch-openreg: the device name and torch.openreg, without an import."""

import torch
import torch.distributed as dist

x = torch.ones(2, 2, device="openreg")
with torch.autocast("openreg"):
    print((x @ x).dtype, x.is_openreg, torch.ones(1).openreg().device)
    # prints: torch.float16 True openreg:0

print(torch.get_device_module("openreg") is torch.openreg, torch.openreg.device_count())
# prints: True 2

dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
dist.all_reduce(x)
print(dist.get_backend_config())
# prints: openreg:occl
