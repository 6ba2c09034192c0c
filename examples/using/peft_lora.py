# SPDX-License-Identifier: BSD-3-Clause
"""peft: adapters that are trained, saved, loaded and merged on the device."""

from __future__ import annotations

import sys
import tempfile

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from torch import nn

device = sys.argv[1] if len(sys.argv) > 1 else "openreg"
torch.set_num_threads(1)


class Classifier(nn.Module):
    """Two layers; the first layer gets an adapter."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Takes (batch, 8), returns (batch, 2)."""
        return self.second(torch.tanh(self.first(x)))


inputs = torch.randn(16, 8, generator=torch.Generator().manual_seed(1)).to(device)
target = (inputs.sum(1) > 0).long()
base = Classifier().to(device)
model = get_peft_model(base, LoraConfig(r=4, target_modules=["first"]))
optimizer = torch.optim.Adam(
    [weight for weight in model.parameters() if weight.requires_grad], lr=0.1
)
losses = []
for _ in range(5):
    loss = nn.functional.cross_entropy(model(inputs), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses:", losses)

with tempfile.TemporaryDirectory() as folder:
    model.save_pretrained(folder)
    # [docs: load]
    # peft reads the file onto the CPU by default; the adapter follows its layer.
    loaded = PeftModel.from_pretrained(Classifier().to(device), folder)
    # [docs: end]
places = {weight.device.type for weight in loaded.parameters()}
with torch.no_grad():
    print("loaded:", torch.equal(loaded(inputs), model(inputs)))  # prints: loaded: True
    print("merged:", loaded.merge_and_unload()(inputs)[0].tolist())
print("device:", *places)
