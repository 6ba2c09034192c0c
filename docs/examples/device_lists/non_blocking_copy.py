# SPDX-License-Identifier: BSD-3-Clause
"""A copy to the host that does not block."""

# part: Tensors and memory
# place: aten/src/ATen/native/TensorConversions.cpp: _to_copy
# asks: self.is_cuda() || self.is_privateuseone()
# means: `x.to("cpu", non_blocking=True)` allocates pinned memory for the result. A copy
#   to unpinned memory would block
# noticed: an error
# way: mechanism host_allocator

import torch

x = torch.ones(2, device="openreg")
print(x.to("cpu", non_blocking=True).is_pinned())
# prints: True
# without it: implement `getPinnedMemoryAllocator` at the same time
