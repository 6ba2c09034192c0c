# SPDX-License-Identifier: BSD-3-Clause
"""A process group that does not communicate."""

# part: Distributed
# place: torch/distributed/distributed_c10d.py: Backend
# asks: FAKE: ["cpu", "cuda", "hpu", "xpu"]
# means: the backend `fake`, for sharding tests in one process, does not list the device
# noticed: an error
# way: open `"cpu:fake,openreg:fake"`

import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

for backend in ("fake", "cpu:fake,openreg:fake"):
    dist.init_process_group(backend, store=FakeStore(), rank=0, world_size=2)
    try:
        dist.all_reduce(torch.ones(1, device="openreg"))
        print("done")
    except RuntimeError as error:
        print(error)
    dist.destroy_process_group()
# prints: No backend type associated with device type openreg
# prints: done
