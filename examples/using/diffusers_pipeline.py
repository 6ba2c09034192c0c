# SPDX-License-Identifier: BSD-3-Clause
"""diffusers: a tiny model learns to predict noise, and a pipeline draws images."""

from __future__ import annotations

import sys

import torch
from diffusers import DDIMPipeline, DDIMScheduler, UNet2DModel
from torch import nn

device = sys.argv[1] if len(sys.argv) > 1 else "openreg"
torch.set_num_threads(1)
torch.manual_seed(0)
model = UNet2DModel(
    sample_size=8,
    in_channels=1,
    out_channels=1,
    layers_per_block=1,
    block_out_channels=(8, 16),
    norm_num_groups=4,
    down_block_types=("DownBlock2D", "AttnDownBlock2D"),
    up_block_types=("AttnUpBlock2D", "UpBlock2D"),
)
pipeline = DDIMPipeline(model, DDIMScheduler(num_train_timesteps=100)).to(device)
pipeline.set_progress_bar_config(disable=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
images = torch.rand(4, 1, 8, 8).to(device)
losses = []
for _ in range(3):
    noise = torch.randn(4, 1, 8, 8).to(device)
    steps = torch.randint(100, (4,)).to(device)
    noisy = pipeline.scheduler.add_noise(images, noise, steps)
    loss = nn.functional.mse_loss(model(noisy, steps).sample, noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses:", losses)
# [docs: generator]
generator = torch.Generator(device).manual_seed(0)
drawn = pipeline(
    generator=generator, num_inference_steps=3, output_type="np", batch_size=2
)
# [docs: end]
print("drawn:", drawn.images.sum(axis=(1, 2, 3)).tolist())
print("device:", pipeline.device.type)
