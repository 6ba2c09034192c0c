# SPDX-License-Identifier: BSD-3-Clause
"""MONAI: a U-Net, a Dice loss, sliding windows, transforms and a metric."""

from __future__ import annotations

import sys

import torch
from monai.inferers import sliding_window_inference
from monai.losses import DiceCELoss
from monai.metrics import DiceMetric
from monai.networks.nets import UNet
from monai.transforms import (
    AsDiscrete,
    Compose,
    EnsureType,
    RandGaussianNoise,
    ScaleIntensity,
)

device = sys.argv[1] if len(sys.argv) > 1 else "openreg"
torch.set_num_threads(1)
torch.manual_seed(0)
model = UNet(
    spatial_dims=2, in_channels=1, out_channels=2, channels=(4, 8), strides=(2,)
).to(device)
# [docs: transforms]
prepare = Compose(
    [EnsureType(device=device), ScaleIntensity(), RandGaussianNoise(prob=1.0)]
).set_random_state(seed=0)
# [docs: end]
images = torch.stack([prepare(torch.rand(1, 32, 32)) for _ in range(4)])
labels = (images > 0.5).float()
loss_of = DiceCELoss(to_onehot_y=True, softmax=True)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
losses = []
for _ in range(3):
    loss = loss_of(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses:", losses)
model.eval()
with torch.no_grad():
    scores = sliding_window_inference(images, (16, 16), 2, model, mode="gaussian")
dice = DiceMetric()
to_onehot = AsDiscrete(to_onehot=2)
dice(
    [AsDiscrete(argmax=True, to_onehot=2)(score) for score in scores],
    [to_onehot(label) for label in labels],
)
print("dice:", dice.aggregate().item())
print("device:", scores.device.type)
