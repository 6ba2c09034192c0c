# SPDX-License-Identifier: BSD-3-Clause
"""The precision of products of float32."""

# part: Tools
# place: ATen/Context.h: str2backend
# asks: enum class TORCH_API Float32Backend { GENERIC, CUDA, MKLDNN }
# means: `torch.backends.<name>.matmul.fp32_precision` exists for cuda and mkldnn;
#   `torch.set_float32_matmul_precision` reaches the device's kernels, which are the
#   CPU's
# noticed: an error
# way: closed

import torch

try:
    torch._C._set_fp32_precision_setter("openreg", "matmul", "tf32")
except RuntimeError as error:
    print(error)
# prints: Unknown backend: openreg
