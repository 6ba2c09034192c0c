# SPDX-License-Identifier: BSD-3-Clause
"""A device kernel in Python for a PyTorch operator."""

import torch
from torch import Tensor

seen = []

library = torch.library.Library("aten", "IMPL")


def trace(x: Tensor) -> Tensor:
    """Sums the diagonal."""
    seen.append("trace")
    return x.diagonal().sum()


# [docs: kernel]
library.impl("trace", trace, "PrivateUse1")
# [docs: end]

# [docs: before]
previous = torch.library.get_kernel("aten::exp", "PrivateUse1")
# [docs: end]


def watched_exp(keys: torch.DispatchKeySet, x: Tensor) -> Tensor:
    """Records the call and runs the previous kernel."""
    seen.append("exp")
    return previous.call_boxed(keys, x)


# [docs: override]
library.impl("exp", watched_exp, "PrivateUse1", with_keyset=True)
# [docs: end]

x = torch.arange(-4.0, 5.0, dtype=torch.float64, device="openreg").reshape(3, 3)
print(x.trace().item() == x.cpu().trace().item(), seen)
# prints: True ['trace']
# without kernel: True []

# The operator keeps PyTorch's derivative.
print(torch.autograd.gradcheck(torch.trace, x.clone().requires_grad_()))
# prints: True

seen.clear()
print(x.exp().cpu().equal(x.cpu().exp()), seen)
# prints: True ['exp']
# without override: True []
