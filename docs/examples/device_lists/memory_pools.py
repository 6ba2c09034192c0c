# SPDX-License-Identifier: BSD-3-Clause
"""A custom memory pool."""

# part: Tensors and memory
# place: torch/cuda/memory.py: MemPool
# asks: _MemPool
# means: `MemPool`, `use_mem_pool` and `graph_pool_handle` belong to the CUDA library
# noticed: an error
# way: closed

import torch

for call in (torch.cuda.MemPool, torch.cuda.graph_pool_handle):
    try:
        call()
    except RuntimeError as error:
        print(error)
# prints: Tried to instantiate dummy base class MemPool
# prints: Tried to instantiate dummy base class _graph_pool_handle
