# SPDX-License-Identifier: BSD-3-Clause
"""openreg-aten with openreg-amp: mixed precision on privateuseone."""

import torch

import openreg_aten  # noqa: F401  import the backend first

import openreg_amp  # isort: skip

weight = torch.eye(3, device="privateuseone", requires_grad=True)
scaler = torch.amp.GradScaler("privateuseone", init_scale=8.0)
with torch.autocast("privateuseone", dtype=torch.bfloat16):
    product = weight @ weight
    loss = product.softmax(0).sum()
scaler.scale(loss).backward()
print(product.dtype, loss.dtype, weight.grad.dtype)
# prints: torch.bfloat16 torch.float32 torch.float32

print(len(openreg_amp.rules()) > 100)
# prints: True

# The device name needs torch-openreg.
try:
    torch.device("openreg")
except RuntimeError as error:
    print(str(error).split(" cpu,")[0], "...", error.args[0].split(": ")[-1])
# prints: Expected one of ... openreg
