# SPDX-License-Identifier: BSD-3-Clause
"""FSDP2: torchrun --nproc-per-node 2 examples/distributed/shard_parameters.py."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

device = torch.device("openreg", int(os.environ["LOCAL_RANK"]) % 2)
torch.accelerator.set_device_index(device.index)
dist.init_process_group(device_id=device)

with torch.device("meta"):  # no rank holds the whole model
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 4))
for layer in (model[0], model[2], model):
    fully_shard(layer)
model.to_empty(device=device)
torch.manual_seed(0)
for parameter in model.parameters():
    nn.init.normal_(parameter, std=0.1)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
x = torch.randn(16, 8, device=device)
losses = []
for _ in range(20):
    optimizer.zero_grad()
    loss = (model(x) - 1).square().mean()  # gathers one layer at a time
    loss.backward()  # each rank gets its shard of the gradients
    optimizer.step()
    losses.append(loss.item())
weight = model[0].weight
if dist.get_rank() == 0:
    print(f"{list(weight.shape)}, local {list(weight.to_local().shape)}")
    print(f"last loss is below half of the first: {losses[-1] < losses[0] / 2}")
# prints: [32, 8], local [16, 8]
# prints: last loss is below half of the first: True
dist.destroy_process_group()
