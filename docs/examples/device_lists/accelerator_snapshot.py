# SPDX-License-Identifier: BSD-3-Clause
"""The memory snapshot of the accelerator."""

# part: Tensors and memory
# place: torch/accelerator/memory.py: _snapshot
# asks: acc.type == "xpu"
# means: `torch.accelerator.memory._snapshot` calls a CUDA function. Use
#   `torch.openreg.memory_snapshot`
# noticed: an error
# way: closed

import torch

try:
    torch.accelerator.memory._snapshot()
except AttributeError as error:
    print(error)
# prints: module 'torch._C' has no attribute '_cuda_memorySnapshot'
