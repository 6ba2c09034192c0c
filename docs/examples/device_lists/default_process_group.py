# SPDX-License-Identifier: BSD-3-Clause
"""A process group without a backend name."""

# part: Distributed
# place: torch/distributed/distributed_c10d.py: BackendConfig.__init__
# asks: Backend.default_device_backend_map[device_type]
# means: `init_process_group()` has no default backend for the device until one is
#   registered
# noticed: an error
# way: mechanism process_group

import torch.distributed as dist

dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
# without it: We detected accelerator openreg on your machine.
print(dist.get_backend_config())
dist.destroy_process_group()
# prints: openreg:occl
