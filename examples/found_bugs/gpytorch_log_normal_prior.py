# SPDX-License-Identifier: BSD-3-Clause
"""gpytorch 1.15.2: a LogNormalPrior computes with its original parameters.

``to`` moves copies of the parameters, which are buffers for the state dict. The
distribution that the prior transforms keeps the originals. HalfNormalPrior has the same
bug.
"""

from __future__ import annotations

import sys

import torch
from gpytorch.priors import LogNormalPrior

device = sys.argv[1] if len(sys.argv) > 1 else "openreg"
prior = LogNormalPrior(torch.zeros(2), torch.ones(2)).to(device)
values = torch.full((2,), 0.5, device=device)
print(prior.log_prob(values))
# on the device: Expected all tensors to be on the same device
