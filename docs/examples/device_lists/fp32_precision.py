# SPDX-License-Identifier: BSD-3-Clause
"""The precision of float32 matrix products."""

# part: Tools
# place: ATen/Context.h: str2backend
# asks: enum class TORCH_API Float32Backend { GENERIC, CUDA, MKLDNN }
# means: `torch.backends.<name>.matmul.fp32_precision` exists for cuda and mkldnn only.
#   `torch.set_float32_matmul_precision` affects this device, since its kernels are CPU
#   kernels
# noticed: an error
# way: closed

import torch

try:
    torch._C._set_fp32_precision_setter("openreg", "matmul", "tf32")
except RuntimeError as error:
    print(error)
# prints: Unknown backend: openreg
