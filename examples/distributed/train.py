# SPDX-License-Identifier: BSD-3-Clause
"""DDP training: torchrun --nproc-per-node 2 examples/distributed/train.py."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

device = torch.device("openreg", int(os.environ["LOCAL_RANK"]) % 2)
torch.accelerator.set_device_index(device.index)
dist.init_process_group(device_id=device)

torch.manual_seed(0)
model = DistributedDataParallel(nn.Linear(4, 1).to(device), device_ids=[device.index])
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
x = torch.full((8, 4), dist.get_rank() + 1.0, device=device)
for _ in range(20):
    optimizer.zero_grad()
    loss = (model(x) - 1).square().mean()
    loss.backward()  # overlaps with the all_reduce of the gradients
    optimizer.step()
loss = loss.detach()
dist.all_reduce(loss, dist.ReduceOp.AVG)
if dist.get_rank() == 0:
    print(f"ranks: {dist.get_world_size()}, loss below 1: {loss.item() < 1}")
# prints: ranks: 2, loss below 1: True
dist.destroy_process_group()
