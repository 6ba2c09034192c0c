# SPDX-License-Identifier: BSD-3-Clause
"""A process group without a name."""

# part: Several processes
# place: torch/distributed/distributed_c10d.py: BackendConfig.__init__
# asks: Backend.default_device_backend_map[device_type]
# means: `init_process_group()` does not know which library does the collectives of the
#   device, until one is registered for it
# noticed: an error
# way: planned process_group

import torch.distributed as dist

try:
    dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
except ValueError as error:
    print(str(error)[:52])
# prints: We detected accelerator openreg on your machine. But
