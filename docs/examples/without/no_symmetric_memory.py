# SPDX-License-Identifier: BSD-3-Clause
"""Ranks write into each other's memory and send signals."""

import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric_memory

tensor = symmetric_memory.empty(4, device="openreg")
dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
memory = symmetric_memory.rendezvous(tensor, dist.group.WORLD)
tensor.fill_(1)
memory.barrier()  # only one rank here
print(memory.get_buffer(0, (4,), tensor.dtype))
dist.destroy_process_group()
# prints: tensor([1., 1., 1., 1.], device='openreg:0')
# without it: RuntimeError: SymmetricMemory does not support device type openreg
