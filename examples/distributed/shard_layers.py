# SPDX-License-Identifier: BSD-3-Clause
"""DTensor: torchrun --nproc-per-node 2 examples/distributed/shard_layers.py."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

device = torch.device("openreg", int(os.environ["LOCAL_RANK"]) % 2)
torch.accelerator.set_device_index(device.index)
dist.init_process_group(device_id=device)

torch.manual_seed(0)  # the same model and batch on all ranks
model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 4)).to(device)
x = torch.randn(16, 8, device=device)
whole = model(x)
mesh = init_device_mesh("openreg", (dist.get_world_size(),))
# Each rank holds half of the hidden features; the partial outputs are summed.
parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
output = model(x)
output.square().mean().backward()
weight = model[0].weight
if dist.get_rank() == 0:
    print(f"{list(weight.shape)}, local {list(weight.to_local().shape)}")
    print(f"the same output: {torch.allclose(output, whole, atol=1e-6)}")
# prints: [32, 8], local [16, 8]
# prints: the same output: True
dist.destroy_process_group()
