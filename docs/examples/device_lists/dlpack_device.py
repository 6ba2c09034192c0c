# SPDX-License-Identifier: BSD-3-Clause
"""The device that DLPack reports for a tensor."""

# part: Tensors and memory
# place: torch/_tensor.py: Tensor.__dlpack_device__
# asks: self.device.type == "privateuse1"
# means: the device type is the backend name, never `privateuse1`, so libraries that
#   read device tensors through DLPack get an error. `torch.utils.dlpack.to_dlpack`
#   works
# noticed: an error
# way: closed

import torch

try:
    torch.ones(1, device="openreg").__dlpack_device__()
except ValueError as error:
    print(error)
# prints: Unknown device type openreg for Dlpack
