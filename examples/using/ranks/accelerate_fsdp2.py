# SPDX-License-Identifier: BSD-3-Clause
"""accelerate's FSDP2 plugin on ranks.

Run it as ``torchrun --nproc-per-node 2 accelerate_fsdp2.py [openreg | cpu]``.
"""

from __future__ import annotations

import sys

import torch
from accelerate import Accelerator, FullyShardedDataParallelPlugin
from torch import nn

device = sys.argv[1] if len(sys.argv) > 1 else "openreg"
torch.set_num_threads(1)  # the same summation order on both devices


class Block(nn.Module):
    """A layer with a residual connection."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Adds the layer's output to its input."""
        return x + torch.tanh(self.layer(x))


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), Block(), Block(), nn.Linear(16, 1))
inputs, targets = torch.randn(32, 4), torch.randn(32, 1)

if device == "openreg":
    # [docs: plugin]
    from torch_openreg.integrations import accelerate as openreg_accelerate

    openreg_accelerate.enable()
    plugin = FullyShardedDataParallelPlugin(
        fsdp_version=2,
        auto_wrap_policy="transformer_based_wrap",
        transformer_cls_names_to_wrap=["Block"],
        state_dict_type="SHARDED_STATE_DICT",
    )
    accelerator = Accelerator(fsdp_plugin=plugin)
    # [docs: end]
else:  # no shards: accelerate has no FSDP for the CPU
    accelerator = Accelerator(cpu=True)
data = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(inputs, targets), batch_size=4
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
model, optimizer, data = accelerator.prepare(model, optimizer, data)
losses = []
for _ in range(2):
    for batch, target in data:
        loss = nn.functional.mse_loss(model(batch), target)
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
        losses += accelerator.gather(loss.detach()).tolist()
accelerator.print("losses:", losses)
sharded = {type(parameter.data).__name__ for parameter in model.parameters()}
if device == "openreg":
    accelerator.print("parameters are:", sharded)
    # prints: parameters are: {'DTensor'}
accelerator.print("device:", accelerator.device.type)
accelerator.end_training()
