# SPDX-License-Identifier: BSD-3-Clause
"""Batch statistics across processes."""

# part: Layers and functions
# place: torch/nn/modules/batchnorm.py: SyncBatchNorm.forward
# asks: torch._C._get_privateuse1_backend_name()
# means: `SyncBatchNorm` accepts the device by its name, and then calls operators that
#   PyTorch has for CUDA and XPU only
# noticed: an error
# way: mechanism sync_batch_norm

import torch

x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], device="openreg")
try:
    mean, _ = torch.batch_norm_stats(x, 1e-5)
    print(mean.tolist())
except NotImplementedError as error:
    print(str(error)[:38])
# prints: [2.0, 3.0]
# without it: Could not run 'aten::batch_norm_stats'
