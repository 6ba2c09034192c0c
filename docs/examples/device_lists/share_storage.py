# SPDX-License-Identifier: BSD-3-Clause
"""A storage in a torch.multiprocessing queue."""

# part: Tensors and memory
# place: torch/multiprocessing/reductions.py: reduce_tensor
# asks: storage._untyped_storage.device.type == "cuda"
# means: PyTorch treats device memory as host memory when a queue pickles a tensor
# noticed: an error
# way: mechanism multiprocessing

from multiprocessing.reduction import ForkingPickler

import torch
import torch.multiprocessing

x = torch.ones(2, device="openreg")
print(len(bytes(ForkingPickler.dumps(x))) > 0)
# prints: True
# without it: only available on CPU
