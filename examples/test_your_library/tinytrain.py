# SPDX-License-Identifier: BSD-3-Clause
"""A tiny library to test, which trains a model on any device."""

from __future__ import annotations

from collections import deque

import torch
from torch import Tensor, nn


class Trainer:
    """Trains a model by gradient descent and keeps its last losses.

    Args:
        model: Model to train; it is moved to the device.
        device: Where to train.
        lr: Step size.
        window: Number of losses to keep.
    """

    def __init__(
        self,
        model: nn.Module,
        device: torch.device | str = "cpu",
        lr: float = 0.05,
        window: int = 2,
    ) -> None:
        self.device = torch.device(device)
        self.model = model.to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=lr)
        self.losses: deque[Tensor] = deque(maxlen=window)

    def step(self, batch: Tensor, target: Tensor) -> None:
        """Takes one step with a batch that may be on any device."""
        batch = batch.to(self.device, non_blocking=True)
        target = target.to(self.device, non_blocking=True)
        loss = nn.functional.mse_loss(self.model(batch), target)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.detach())

    def mean_loss(self) -> float:
        """Returns the mean of the last losses."""
        return torch.stack(list(self.losses)).mean().item()
