# SPDX-License-Identifier: BSD-3-Clause
"""Lightning Fabric: a training loop in bfloat16 with clipped gradients."""

from __future__ import annotations

import sys

import torch
from lightning.fabric import Fabric
from lightning.fabric.plugins import MixedPrecision
from lightning.fabric.strategies import SingleDeviceStrategy
from torch import nn

from torch_openreg.integrations.lightning import OpenRegAccelerator

device = sys.argv[1] if len(sys.argv) > 1 else "openreg:0"
torch.set_num_threads(1)
# [docs: fabric]
if device.startswith("openreg"):
    strategy = SingleDeviceStrategy(device, accelerator=OpenRegAccelerator())
    fabric = Fabric(
        strategy=strategy, plugins=[MixedPrecision("bf16-mixed", "openreg")]
    )
else:
    fabric = Fabric(accelerator=device, devices=1, precision="bf16-mixed")
# [docs: end]
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.1))
data = fabric.setup_dataloaders(
    torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(torch.randn(32, 4), torch.randn(32, 1)),
        batch_size=8,
    )
)
losses = []
for inputs, targets in data:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(inputs), targets)
    fabric.backward(loss)
    fabric.clip_gradients(model, optimizer, max_norm=1.0)
    optimizer.step()
    losses.append(loss.item())
print("losses:", losses)
print("device:", fabric.device.type)
