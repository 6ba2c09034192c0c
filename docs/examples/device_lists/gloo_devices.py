# SPDX-License-Identifier: BSD-3-Clause
"""Collectives through Gloo."""

# part: Distributed
# place: torch/distributed/distributed_c10d.py: Backend
# asks: GLOO: ["cpu", "cuda"]
# means: Gloo is not selected for device tensors, and rejects them if the program
#   selects it
# noticed: an error
# way: closed

import torch
import torch.distributed as dist

for backend in ("gloo", "cpu:gloo,openreg:gloo"):
    dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    try:
        dist.all_reduce(torch.ones(1, device="openreg"))
    except RuntimeError as error:
        print(error)
    dist.destroy_process_group()
# prints: No backend type associated with device type openreg
# prints: ProcessGroupGloo::allreduce: unsupported device type openreg
