# SPDX-License-Identifier: BSD-3-Clause
"""gpytorch 1.15.2: the limits of a UniformPrior stay on the CPU.

The other priors register their parameters as buffers. UniformPrior does not, so ``to``
does not move them.
"""

from __future__ import annotations

import sys

import torch
from gpytorch.priors import UniformPrior

device = sys.argv[1] if len(sys.argv) > 1 else "openreg"
prior = UniformPrior(torch.zeros(2), torch.ones(2)).to(device)
values = torch.full((2,), 0.5, device=device)
print(prior.log_prob(values))
# on the device: Expected all tensors to be on the same device
