# SPDX-License-Identifier: BSD-3-Clause
"""openreg-aten with openreg-amp: autocast on privateuseone."""
# environment: TORCH_DEVICE_BACKEND_AUTOLOAD=0

import torch

import openreg_aten  # noqa: F401  import the backend first

import openreg_amp  # noqa: F401  # isort: skip

x = torch.ones(2, 2, device="privateuseone")
with torch.autocast("privateuseone", dtype=torch.bfloat16):
    print((x @ x).dtype)
    # prints: torch.bfloat16
