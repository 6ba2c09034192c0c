# SPDX-License-Identifier: BSD-3-Clause
"""The device of a tensor, as DLPack calls it."""

# part: Tensors and memory
# place: torch/_tensor.py: Tensor.__dlpack_device__
# asks: self.device.type == "privateuse1"
# means: no name that a backend takes is `privateuse1`, so libraries that take DLPack
#   from device tensors get an error. `torch.utils.dlpack.to_dlpack` works
# noticed: an error
# way: closed

import torch

try:
    torch.ones(1, device="openreg").__dlpack_device__()
except ValueError as error:
    print(error)
# prints: Unknown device type openreg for Dlpack
