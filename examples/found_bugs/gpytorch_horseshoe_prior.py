# SPDX-License-Identifier: BSD-3-Clause
"""gpytorch 1.15.2: a HorseshoePrior draws some of its samples on the CPU.

``HalfCauchy(1)`` creates its parameter on the CPU, so its samples are on the CPU too.
They are then multiplied by the scale, which is on the device.
"""

from __future__ import annotations

import sys

import torch
from gpytorch.priors import HorseshoePrior

device = sys.argv[1] if len(sys.argv) > 1 else "openreg"
prior = HorseshoePrior(torch.ones(2)).to(device)
print(prior.rsample())
# on the device: Expected all tensors to be on the same device
