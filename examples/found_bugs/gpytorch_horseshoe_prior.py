# SPDX-License-Identifier: BSD-3-Clause
"""gpytorch 1.15.2: a HorseshoePrior draws a part of its samples on the CPU.

``HalfCauchy(1)`` makes its parameter on the CPU, and so its samples, which are
multiplied by the scale on the device.
"""

from __future__ import annotations

import sys

import torch
from gpytorch.priors import HorseshoePrior

device = sys.argv[1] if len(sys.argv) > 1 else "openreg"
prior = HorseshoePrior(torch.ones(2)).to(device)
print(prior.rsample())
# on the device: Expected all tensors to be on the same device
