# SPDX-License-Identifier: BSD-3-Clause
"""Autocast with a gradient scaler, as on any accelerator."""

import torch
from torch import nn

import openreg_amp

model = nn.Linear(4, 2, device="openreg")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("openreg")
with torch.autocast("openreg", dtype=torch.float16):
    y = model(torch.ones(3, 4, device="openreg"))
    loss = nn.functional.mse_loss(y, torch.zeros_like(y))
print(y.dtype, loss.dtype)
# prints: torch.float16 torch.float32
scaler.scale(loss).backward()
scaler.step(optimizer)
scaler.update()
print(model.weight.grad.dtype)
# prints: torch.float32
rules = dict(openreg_amp.rules())
print(
    rules["aten::linear"], rules["aten::mse_loss"], rules["aten::binary_cross_entropy"]
)
# prints: lower_precision_fp fp32 banned
