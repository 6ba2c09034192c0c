# SPDX-License-Identifier: BSD-3-Clause
"""Predicts a training step on two devices."""

import torch
from torch import nn

import openreg_predict

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024))
model.to("openreg")
optimizer = torch.optim.AdamW(model.parameters())
x = torch.randn(64, 1024, device="openreg")
with openreg_predict.record() as run:
    model(x).square().mean().backward()
    optimizer.step()
slow, fast = (run.predict(device) for device in ("t4", "h100-sxm"))
print(slow.step.value > fast.step.value, fast.fits)
# prints: True True
print(max(slow.bound, key=slow.bound.get))
# prints: memory
