# SPDX-License-Identifier: BSD-3-Clause
"""Statistics over several processes."""

# part: Layers and functions
# place: torch/nn/modules/batchnorm.py: SyncBatchNorm.forward
# asks: torch._C._get_privateuse1_backend_name()
# means: `SyncBatchNorm` accepts the device by its name, and then needs operators that
#   only CUDA and XPU have
# noticed: an error
# way: planned sync_batch_norm

import torch
import torch.distributed as dist

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
layer = torch.nn.SyncBatchNorm(2).to("openreg")
x = torch.ones(2, 2, device="openreg", requires_grad=True)
try:
    torch.batch_norm_stats(x, 1e-5)
except NotImplementedError as error:
    print(str(error)[:36])
# prints: Could not run 'aten::batch_norm_stat
dist.destroy_process_group()
