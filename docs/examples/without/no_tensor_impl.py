# SPDX-License-Identifier: BSD-3-Clause
"""A layout without strides, which PyTorch preserves in copies of the tensor."""

import torch

x = torch.arange(6.0, device="openreg").view(2, 3)
weight = torch.nn.Parameter(torch.openreg.to_tiled(x, (2, 2)), requires_grad=False)
print(torch.openreg.tile_shape(weight.detach()))
# prints: (2, 2)
try:
    weight.add(1)
except NotImplementedError:
    print("refused")
# prints: refused
print(torch.openreg.from_tiled(weight).tolist())
# prints: [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
# without it: '_OpNamespace' 'openreg' object has no attribute 'to_tiled'
