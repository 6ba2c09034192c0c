# SPDX-License-Identifier: BSD-3-Clause
"""The device is available as soon as torch is imported."""

import torch

x = torch.ones(2, 3, device="openreg")
y = x + x
print(y.device, y.sum().item())
# prints: openreg:0 12.0
print(y.cpu().equal(torch.full((2, 3), 2.0)))
# prints: True
