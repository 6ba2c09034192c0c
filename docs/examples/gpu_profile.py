# SPDX-License-Identifier: BSD-3-Clause
"""A program for an A100 on the profile of a P100."""

# environment: OPENREG_PROFILE=p100

import torch

print(torch.openreg.get_device_name(), torch.openreg.get_device_capability())
# prints: Tesla P100-PCIE-16GB (6, 0)
print(torch.openreg.is_bf16_supported(including_emulation=False))
# prints: False
x = torch.ones(4, 4, dtype=torch.bfloat16, device="openreg")
try:
    x @ x
except RuntimeError as error:
    print(str(error).partition(" when")[0])
    # prints: CUDA error: CUBLAS_STATUS_NOT_SUPPORTED
