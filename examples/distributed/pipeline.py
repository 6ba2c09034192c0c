# SPDX-License-Identifier: BSD-3-Clause
"""Pipelining: torchrun --nproc-per-node 2 examples/distributed/pipeline.py."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

rank = int(os.environ["RANK"])
device = torch.device("openreg", int(os.environ["LOCAL_RANK"]) % 2)
torch.accelerator.set_device_index(device.index)
dist.init_process_group(device_id=device)

torch.manual_seed(0)
layers = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 4))
part = (layers[:2], layers[2:])[rank].to(device)
x, target = torch.randn(16, 8, device=device), torch.ones(16, 4, device=device)
stage = PipelineStage(part, rank, 2, device)
# Four microbatches; each rank alternates between forward and backward passes.
schedule = Schedule1F1B(stage, n_microbatches=4, loss_fn=nn.functional.mse_loss)
optimizer = torch.optim.AdamW(part.parameters(), lr=0.02)
history = []
for _ in range(20):
    optimizer.zero_grad()
    losses: list[torch.Tensor] = []
    if rank == 0:
        schedule.step(x)
    else:
        schedule.step(target=target, losses=losses)
        history.append(torch.stack(losses).mean().item())
    optimizer.step()
if rank == 1:
    print(f"last loss is below half of the first: {history[-1] < history[0] / 2}")
# prints: last loss is below half of the first: True
dist.destroy_process_group()
