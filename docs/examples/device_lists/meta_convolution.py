# SPDX-License-Identifier: BSD-3-Clause
"""The strides that the compiler expects of a convolution."""

# part: Compilers
# place: ATen/native/ConvUtils.h: xpu_conv_use_channels_last
# asks: input.is_xpu()
# means: for a channels_last input the compiler expects a contiguous result, except on
#   CUDA, CPU, MPS and XPU. This device runs the CPU convolution, whose result is
#   channels_last. A `reshape` or `flatten` is then traced as a `view`, which fails when
#   the compiled code runs, and `stride()` returns wrong values
# noticed: an error
# way: mechanism fake_tensor

import torch


def features(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Returns a convolution, one row for each image."""
    return torch.nn.functional.conv2d(x, weight).flatten(1)


x = torch.ones(2, 3, 5, 5, device="openreg").contiguous(
    memory_format=torch.channels_last
)
weight = torch.ones(4, 3, 3, 3, device="openreg")
print(features(x, weight).shape)
# prints: torch.Size([2, 36])
try:
    print(torch.compile(features, backend="aot_eager")(x, weight).shape)
except RuntimeError as error:
    print(str(error)[:56])
# prints: torch.Size([2, 36])
# without it: view size is not compatible with input tensor's size and
