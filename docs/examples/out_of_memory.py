# SPDX-License-Identifier: BSD-3-Clause
"""A tensor that exceeds device memory, with the same error as on CUDA."""
# environment: OPENREG_DEVICE_MEMORY=64MiB

import textwrap

import torch

print(torch.openreg.mem_get_info())
# prints: (67108864, 67108864)
try:
    torch.empty(100, 2**20, dtype=torch.uint8, device="openreg")
except torch.OutOfMemoryError as error:
    print(textwrap.fill(str(error), 70))
    # prints: OpenReg out of memory. Tried to allocate 100.00 MiB. Device openreg:0
    # prints: has a total capacity of 64.00 MiB of which 64.00 MiB is free. This
    # prints: process has 0 bytes memory in use. Of the allocated memory 0 bytes is
    # prints: allocated by PyTorch, and 0 bytes is reserved by PyTorch but
    # prints: unallocated. If reserved but unallocated memory is large try setting
    # prints: PYTORCH_ALLOC_CONF=max_split_size_mb:<MiB> to avoid fragmentation. Set
    # prints: OPENREG_DEVICE_MEMORY to simulate a larger device.
print(torch.ones(2, device="openreg").tolist())  # the device still works
# prints: [1.0, 1.0]
