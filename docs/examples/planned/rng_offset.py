# SPDX-License-Identifier: BSD-3-Clause
"""A random DTensor needs generators of which PyTorch knows seed and offset."""

import torch.distributed as dist
from torch.distributed.tensor import init_device_mesh, rand
from torch.testing._internal.distributed.fake_pg import FakeStore, _create_fake_pg

dist.Backend.register_backend(
    "nothing", _create_fake_pg, extended_api=True, devices=["openreg"]
)
dist.init_process_group("nothing", store=FakeStore(), rank=0, world_size=2)
rand(4, device_mesh=init_device_mesh("openreg", (2,)))
# fails: AssertionError
