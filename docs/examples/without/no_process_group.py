# SPDX-License-Identifier: BSD-3-Clause
"""An all_reduce over a process group."""

import torch
import torch.distributed as dist

dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
x = torch.ones(2, device="openreg")
dist.all_reduce(x)
print(x.tolist())
# prints: [1.0, 1.0]
# without it: ValueError: We detected accelerator openreg on your machine. But
dist.destroy_process_group()
