# SPDX-License-Identifier: BSD-3-Clause
"""The interface through which CuPy and Numba accept tensors."""

# part: Tensors and memory
# place: torch/_tensor.py: Tensor.__cuda_array_interface__
# asks: not self.is_cuda
# means: device tensors do not expose their memory through this interface
# noticed: an error
# way: closed

import torch

try:
    print(torch.ones(1, device="openreg").__cuda_array_interface__)
except AttributeError as error:
    print(str(error)[:58])
# prints: Can't get __cuda_array_interface__ on non-CUDA tensor type
