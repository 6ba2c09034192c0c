# SPDX-License-Identifier: BSD-3-Clause
"""The strides that a compiler expects of a convolution."""

# part: Compilers
# place: aten/src/ATen/native/Convolution.cpp: determine_backend_memory_format
# asks: ConvBackend::Overrideable
# means: for a channels_last input the compiler expects a contiguous result, except on
#   XPU; this device's convolution is the CPU's, and its result is channels_last.
#   `reshape` after it may become a `view` that fails when the compiled code runs, and
#   `stride()` is answered wrongly
# noticed: nothing
# way: closed

import torch
from torch._subclasses.fake_tensor import FakeTensorMode


def convolve() -> torch.Tensor:
    """Returns the convolution of a channels_last input."""
    x = torch.ones(2, 3, 5, 5, device="openreg")
    weight = torch.ones(4, 3, 3, 3, device="openreg")
    x = x.contiguous(memory_format=torch.channels_last)
    return torch.nn.functional.conv2d(x, weight)


with FakeTensorMode():
    print(convolve().stride())
# prints: (36, 9, 3, 1)
print(convolve().stride())
# prints: (36, 1, 12, 4)
