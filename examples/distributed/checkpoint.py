# SPDX-License-Identifier: BSD-3-Clause
"""A checkpoint that loads on a different number of ranks.

torchrun --nproc-per-node 2 examples/distributed/checkpoint.py save FOLDER
torchrun --nproc-per-node 4 examples/distributed/checkpoint.py load FOLDER
"""

import os
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    get_model_state_dict,
    set_model_state_dict,
)
from torch.distributed.fsdp import fully_shard

command, folder = sys.argv[1:]
device = torch.device("openreg", int(os.environ["LOCAL_RANK"]) % 2)
torch.accelerator.set_device_index(device.index)
dist.init_process_group(device_id=device)

torch.manual_seed(0 if command == "save" else 1)
model = fully_shard(nn.Linear(8, 4).to(device))
state = get_model_state_dict(model)
if command == "save":
    dcp.save(state, checkpoint_id=folder)
else:
    dcp.load(state, checkpoint_id=folder)  # each rank reads its part
    set_model_state_dict(model, state)
total = model.weight.full_tensor().sum().item()
if dist.get_rank() == 0:
    print(f"local {list(model.weight.to_local().shape)}, sum {total:.4f}")
# prints, with save: local [2, 8], sum
# prints, with load: local [1, 8], sum
dist.destroy_process_group()
