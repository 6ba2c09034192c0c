# SPDX-License-Identifier: BSD-3-Clause
"""A device has a size, and a tensor that does not fit is refused as on CUDA."""
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
    # prints: has a total capacity of 64.00 MiB of which 64.00 MiB is free. Of the
    # prints: allocated memory 0 bytes is allocated by PyTorch, and 0 bytes is
    # prints: reserved by PyTorch but unallocated. Set OPENREG_DEVICE_MEMORY to
    # prints: simulate a larger device.
print(torch.ones(2, device="openreg").tolist())  # the device goes on
# prints: [1.0, 1.0]
