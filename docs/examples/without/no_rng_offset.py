# SPDX-License-Identifier: BSD-3-Clause
"""Two ranks draw a tensor together: each sets the offset where its part begins."""

import torch
import torch.distributed as dist
from torch.distributed.tensor import Shard, init_device_mesh, rand
from torch.testing._internal.distributed.fake_pg import FakeStore, _create_fake_pg

dist.Backend.register_backend(
    "nothing", _create_fake_pg, extended_api=True, devices=["openreg"]
)
dist.init_process_group("nothing", store=FakeStore(), rank=1, world_size=2)
torch.openreg.set_device(1)
mesh = init_device_mesh("openreg", (2,))
torch.manual_seed(0)
drawn = rand(8, device_mesh=mesh, placements=[Shard(0)]).to_local()
torch.manual_seed(0)
print(drawn.cpu().equal(torch.rand(20)[16:]))
dist.destroy_process_group()
# prints: True
# without it: AssertionError
