# SPDX-License-Identifier: BSD-3-Clause
"""accelerate on ranks: DDP, gathered losses, and a checkpoint with dropout.

Run it as ``torchrun --nproc-per-node 2 accelerate_ddp.py [openreg | cpu]``.
"""

from __future__ import annotations

import sys
import tempfile

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list
from torch import nn

device = sys.argv[1] if len(sys.argv) > 1 else "openreg"
torch.set_num_threads(1)  # the same summation order on both devices
# [docs: enable]
if device == "openreg":
    from torch_openreg.integrations import accelerate as openreg_accelerate

    openreg_accelerate.enable()
accelerator = Accelerator(cpu=device == "cpu")
# [docs: end]

torch.manual_seed(0)
inputs, targets = torch.randn(32, 4), torch.randn(32, 1)
data = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(inputs, targets),
    batch_size=4,
    generator=torch.Generator(),  # not the default generator
)
model = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Dropout(0.5), nn.Linear(32, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
model, optimizer, data = accelerator.prepare(model, optimizer, data)
torch.manual_seed(accelerator.process_index)  # seeds the CPU and the device


def epoch() -> list[float]:
    """Trains on this rank's batches; returns the losses of all ranks."""
    losses = []
    for batch, target in data:
        loss = nn.functional.mse_loss(model(batch), target)
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
        losses += accelerator.gather(loss.detach()).tolist()
    return losses


with tempfile.TemporaryDirectory() as folder:
    (folder,) = broadcast_object_list([folder])
    first = epoch()
    accelerator.save_state(folder)
    second = epoch()
    accelerator.load_state(folder)
    third = epoch()
    accelerator.wait_for_everyone()
accelerator.print("first epoch:", first)
accelerator.print("second epoch:", second)
accelerator.print("the resumed epoch is the same:", third == second)
# prints: the resumed epoch is the same: True
places = accelerator.gather_for_metrics([str(accelerator.device)], True)
accelerator.print("devices:", places)
# prints: devices: ['openreg:0', 'openreg:1']
accelerator.print("device:", accelerator.device.type)
accelerator.end_training()
