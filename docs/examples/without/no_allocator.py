# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch reads memory statistics from the device allocator."""

import torch

x = torch.ones(2, device="openreg")
print(torch.accelerator.memory_allocated())
# prints: 512
# without it: Allocator for openreg is not a DeviceAllocator.
