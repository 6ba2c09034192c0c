# SPDX-License-Identifier: BSD-3-Clause
"""openreg-aten with openreg-distributed: collectives on privateuseone."""

import torch
import torch.distributed as dist

import openreg_distributed

openreg_distributed.register()
dist.init_process_group("occl", store=dist.HashStore(), rank=0, world_size=1)
x = torch.arange(3.0, device="privateuseone")
dist.all_reduce(x)
print(x, dist.get_backend())
# prints: tensor([0., 1., 2.], device='privateuseone:0') occl
dist.destroy_process_group()
