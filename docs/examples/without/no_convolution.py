# SPDX-License-Identifier: BSD-3-Clause
"""Convolutions of a backend that PyTorch does not know are the backend's own."""

import torch

x = torch.ones(1, 1, 4, 4, device="openreg")
print(torch.nn.functional.conv2d(x, x).item())
# prints: 16.0
# without it: NotImplementedError: convolution_overrideable not implemented.
