# SPDX-License-Identifier: BSD-3-Clause
"""Custom operators through the older API."""

# part: Tools
# place: torch/_custom_op/impl.py: SUPPORTED_DEVICE_TYPE_TO_KEY
# asks: "cpu": "CPU", "cuda": "CUDA",
# means: the deprecated `torch._custom_op` registers kernels for CPU and CUDA only
# noticed: an error
# way: open `torch.library.custom_op(device_types="openreg")`

import torch
from torch._custom_op.impl import validate_device_type

try:
    validate_device_type("openreg")
except ValueError as error:
    print(str(error)[:71])
# prints: CustomOp.impl(device_types=[openreg, ...]): we only support device_type


@torch.library.custom_op("device_lists::twice", mutates_args=(), device_types="openreg")
def twice(x: torch.Tensor) -> torch.Tensor:
    """Returns the double."""
    return x * 2


print(twice(torch.ones(1, device="openreg")).item())
# prints: 2.0
