# SPDX-License-Identifier: BSD-3-Clause
"""gpytorch 1.15.2: the concentration of an LKJPrior stays on the CPU.

It is an attribute and not a buffer, so ``to`` does not move it. The same bug is in
LKJCholeskyFactorPrior and LKJCovariancePrior.
"""

from __future__ import annotations

import sys

import torch
from gpytorch.priors import LKJPrior

device = sys.argv[1] if len(sys.argv) > 1 else "openreg"
prior = LKJPrior(2, torch.tensor(0.5)).to(device)
print(prior.log_prob(torch.eye(2, device=device)))
# on the device: Expected all tensors to be on the same device
