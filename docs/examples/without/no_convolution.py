# SPDX-License-Identifier: BSD-3-Clause
"""The backend computes convolutions, since PyTorch has no rule for its device."""

import torch

x = torch.ones(1, 1, 4, 4, device="openreg")
print(torch.nn.functional.conv2d(x, x).item())
# prints: 16.0
# without it: NotImplementedError: convolution_overrideable not implemented.
