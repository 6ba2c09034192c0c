# SPDX-License-Identifier: BSD-3-Clause
"""safetensors: files that are written from the device and read onto it."""

from __future__ import annotations

import sys
import tempfile

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, load_model, save_file, save_model
from torch import nn

device = torch.device(sys.argv[1] if len(sys.argv) > 1 else "openreg:1")
torch.manual_seed(0)
model = nn.Linear(4, 2)
weights = {name: value.to(device) for name, value in model.state_dict().items()}

with tempfile.TemporaryDirectory() as folder:
    file = f"{folder}/weights.safetensors"
    save_file(weights, file)
    # [docs: load]
    onto_the_cpu = load_file(file)
    moved = {name: value.to(device) for name, value in onto_the_cpu.items()}
    # [docs: end]
    if device.type != "cpu":
        # [docs: number]
        direct = load_file(file, device=device.index)  # the index, not the name
        with safe_open(file, "pt", device=device.index) as opened:
            rows = opened.get_slice("weight")[1:]
        print("by index:", direct["weight"].device, rows.device)
        # prints: by index: openreg:1 openreg:1
        # [docs: end]
        try:
            load_file(file, device=str(device))
        except SafetensorError as error:
            print("by name:", error)
            # prints: by name: device openreg:1 is invalid
    save_model(model.to(device), file)
    other = nn.Linear(4, 2).to(device)
    load_model(other, file)
print("weights:", moved["weight"].tolist())
print("same:", all(torch.equal(moved[name], value) for name, value in weights.items()))
print("same model:", torch.equal(other.weight, model.weight))
print("device:", moved["weight"].device.type)
