# SPDX-License-Identifier: BSD-3-Clause
"""ignite: a supervised trainer and an evaluator."""

from __future__ import annotations

import sys

import torch
from ignite.engine import (
    Events,
    create_supervised_evaluator,
    create_supervised_trainer,
)
from ignite.metrics import Accuracy, Loss
from torch import nn

device = sys.argv[1] if len(sys.argv) > 1 else "openreg"
torch.set_num_threads(1)
torch.manual_seed(0)
inputs = torch.randn(64, 8)
labels = (inputs.sum(1) > 0).long()
data = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(inputs, labels), batch_size=16
)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = nn.CrossEntropyLoss()
# [docs: device]
trainer = create_supervised_trainer(model, optimizer, loss, device=device)
metrics = {"accuracy": Accuracy(device=device), "loss": Loss(loss, device=device)}
evaluator = create_supervised_evaluator(model, metrics, device=device)
# [docs: end]
losses: list[float] = []


@trainer.on(Events.ITERATION_COMPLETED)
def keep(engine) -> None:
    """Records the loss of an iteration."""
    losses.append(engine.state.output)


trainer.run(data, max_epochs=2)
evaluator.run(data)
print("losses:", losses)
print("evaluation:", evaluator.state.metrics)
print("device:", next(model.parameters()).device.type)
