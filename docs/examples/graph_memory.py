# SPDX-License-Identifier: BSD-3-Clause
"""Graph memory, which stays reserved until the graph is reset."""

import torch

MIB = 2**20
x = torch.zeros(MIB, device="openreg")
graph = torch.accelerator.Graph()
before = torch.accelerator.memory_reserved()
with torch.Stream(device="openreg"), graph:
    y = (x + 1) * 2 - 1
held = torch.accelerator.memory_reserved() - before
torch.accelerator.empty_cache()
print(held == torch.accelerator.memory_reserved() - before)
# prints: True
graph.replay()
print(y.sum().item() / MIB)
# prints: 1.0
del y
graph.reset()
torch.accelerator.empty_cache()
print(torch.accelerator.memory_reserved() - before)
# prints: 0
