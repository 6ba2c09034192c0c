# SPDX-License-Identifier: BSD-3-Clause
"""Pinned memory comes from the accelerator's host allocator."""

import torch

print(torch.ones(2).pin_memory().is_pinned())
# prints: True
# without it: and implement `getPinnedMemoryAllocator` at the same time for PrivateUse1.
