# SPDX-License-Identifier: BSD-3-Clause
"""A training step that is captured once and replayed for each batch."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)).to("openreg")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.zeros(32, 8, device="openreg")  # each replay reads these inputs
y = torch.zeros(32, 1, device="openreg")


def step():
    """Trains on the current contents of x and y."""
    optimizer.zero_grad(set_to_none=True)
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


stream = torch.Stream(device="openreg")
stream.wait_stream(torch.accelerator.current_stream())
with stream:  # warm-up
    for _ in range(3):
        step()
torch.accelerator.current_stream().wait_stream(stream)

graph = torch.accelerator.Graph()
with stream, graph:
    loss = step()

for _ in range(50):
    batch = torch.randn(32, 8)
    x.copy_(batch)
    y.copy_(batch.sum(1, keepdim=True))
    graph.replay()
print(loss.item() < 0.5)
# prints: True
