# SPDX-License-Identifier: BSD-3-Clause
"""Memory that a kernel allocates while it runs is device memory and is counted."""

import torch

x = torch.rand(1_000_000, device="openreg")
mask = x > 2
base = torch.openreg.memory_allocated()
torch.openreg.reset_peak_memory_stats()
x.masked_select(mask)
print("workspace:", torch.openreg.max_memory_allocated() - base > 1_000_000)
# prints: workspace: True
# without it: workspace: False
