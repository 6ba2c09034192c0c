# SPDX-License-Identifier: BSD-3-Clause
"""Work is recorded once and replayed three times."""

import torch

x = torch.zeros(2, device="openreg")
graph = torch.accelerator.Graph()
with torch.Stream(device="openreg"), graph:
    x.add_(1)
for _ in range(3):
    graph.replay()
print(x.tolist())
# prints: [3.0, 3.0]
# without it: RuntimeError: Graph is not supported on device type: openreg
