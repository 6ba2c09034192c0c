# SPDX-License-Identifier: BSD-3-Clause
"""Elastic training: torchrun restarts both ranks after one rank is killed."""

import os
import signal
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.nn.parallel import DistributedDataParallel

folder = Path(sys.argv[1])  # for the checkpoints
device = torch.device("openreg", int(os.environ["LOCAL_RANK"]) % 2)
torch.accelerator.set_device_index(device.index)
dist.init_process_group(device_id=device)

torch.manual_seed(0)
model = DistributedDataParallel(nn.Linear(4, 1).to(device), device_ids=[device.index])
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)


def save(step):
    """Writes a checkpoint; its metadata file comes last."""
    weights, moments = get_state_dict(model, optimizer)
    state = {"model": weights, "optimizer": moments}
    dcp.save(state, checkpoint_id=folder / str(step))


def load():
    """Loads the last complete checkpoint; returns its step, or 0 if there is none."""
    step = max(
        (int(each.parent.name) for each in folder.glob("*/.metadata")), default=0
    )
    if step > 0:
        weights, moments = get_state_dict(model, optimizer)
        state = {"model": weights, "optimizer": moments}
        dcp.load(state, checkpoint_id=folder / str(step))
        set_state_dict(
            model, optimizer, model_state_dict=weights, optim_state_dict=moments
        )
    return step


first = load()
x = torch.full((8, 4), dist.get_rank() + 1.0, device=device)
restarts = os.environ["TORCHELASTIC_RESTART_COUNT"]
for step in range(first, 10):
    if step == 6 and dist.get_rank() == 1 and restarts == "0":
        os.kill(os.getpid(), signal.SIGKILL)  # simulates a host failure
    optimizer.zero_grad()
    loss = (model(x) - 1).square().mean()
    loss.backward()
    optimizer.step()
    save(step + 1)
loss = loss.detach()
dist.all_reduce(loss, dist.ReduceOp.AVG)
if dist.get_rank() == 0:
    print(f"restarts: {restarts}, from step {first}, loss {loss.item():.5f}")
    # prints: restarts: 1, from step 6, loss 1.61569
dist.destroy_process_group()
