# SPDX-License-Identifier: BSD-3-Clause
"""torchao: inference with 8-bit weights on the device."""

from __future__ import annotations

import sys

import torch
from torch import nn
from torchao.quantization import (
    Int8DynamicActivationInt8WeightConfig,
    Int8WeightOnlyConfig,
    quantize_,
)

device = sys.argv[1] if len(sys.argv) > 1 else "openreg"
torch.set_num_threads(1)
inputs = torch.randn(4, 64, generator=torch.Generator().manual_seed(0)).to(device)
for config in (Int8WeightOnlyConfig(), Int8DynamicActivationInt8WeightConfig()):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 8)).eval()
    model = model.to(device)
    quantize_(model, config)
    with torch.no_grad():
        outputs = model(inputs)
    print(type(config).__name__ + ":", outputs[0].tolist())
    state = {name: value.cpu() for name, value in model.state_dict().items()}
    print("moved:", sorted({value.device.type for value in state.values()}))
print("device:", outputs.device.type)
