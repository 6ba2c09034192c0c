# SPDX-License-Identifier: BSD-3-Clause
"""The DataLoader thread that pins batches."""

# part: Tools
# place: torch/utils/data/_utils/pin_memory.py: _pin_memory_loop
# asks: torch.accelerator.set_device_index(device_id)
# means: `DataLoader(pin_memory=True)` pins memory for the accelerator of the process
# noticed: an error
# way: mechanism host_allocator

import torch

(batch,) = torch.utils.data.DataLoader([torch.ones(2)], pin_memory=True)
print(batch.is_pinned())
# prints: True
# without it: implement `getPinnedMemoryAllocator` at the same time
