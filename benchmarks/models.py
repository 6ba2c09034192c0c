# SPDX-License-Identifier: BSD-3-Clause
"""The models that the benchmarks train, and their training steps."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import cast

import torch
from side_by_side import Make, Work
from torch import Tensor, nn

Wrap = Callable[[nn.Module], nn.Module]


def mlp() -> nn.Module:
    """Returns a 64-256-256-10 network."""
    return nn.Sequential(
        nn.Linear(64, 256),
        nn.ReLU(),
        nn.Linear(256, 256),
        nn.ReLU(),
        nn.Linear(256, 10),
    )


def tiny_mlp() -> nn.Module:
    """Returns a 16-32-10 network with a layer norm."""
    return nn.Sequential(
        nn.Linear(16, 32), nn.LayerNorm(32), nn.ReLU(), nn.Linear(32, 10)
    )


def tiny_convnet() -> nn.Module:
    """Returns a classifier with two convolutions for images of 16 x 16 pixels."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, padding=1, stride=2),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(8 * 8 * 8, 10),
    )


def convnet() -> nn.Module:
    """Returns a classifier with two convolutions for images of 28 x 28 pixels."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * 7 * 7, 10),
    )


class GPT(nn.Module):
    """Two pre-norm decoder layers over 64 characters."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.tokens = nn.Embedding(64, width)
        self.positions = nn.Embedding(32, width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width, 4, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True
            )
            for _ in range(2)
        )
        self.head = nn.Linear(width, 64)

    def forward(self, text: Tensor) -> Tensor:
        """Returns logits (batch, time, 64) for texts (batch, time)."""
        time = text.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(time, device=text.device)
        x = self.tokens(text) + self.positions.weight[:time]
        for layer in self.layers:
            x = layer(x, src_mask=mask, is_causal=True)
        return cast("Tensor", self.head(x)).transpose(1, 2)


def unwrapped(network: nn.Module) -> nn.Module:
    """Returns the model unchanged."""
    return network


def training_step(
    model: Callable[[], nn.Module],
    optimizer: Callable[..., torch.optim.Optimizer],
    inputs: Callable[[], Tensor],
    labels: Callable[[], Tensor],
    wrap: Wrap = unwrapped,
) -> Make:
    """Prepares one training step of a model with cross entropy."""

    def make(device: str) -> Work:
        torch.manual_seed(0)
        network = wrap(model().to(device))
        update = optimizer(network.parameters(), lr=1e-3)
        x, y = inputs().to(device), labels().to(device)

        def step() -> Tensor:
            update.zero_grad()
            loss = nn.functional.cross_entropy(network(x), y)
            loss.backward()
            update.step()
            return loss

        return step

    return make


def steps(wrap: Wrap = unwrapped) -> dict[str, Make]:
    """Prepares a training step of each model, by name."""
    return {
        "MLP": training_step(
            mlp,
            partial(torch.optim.SGD, momentum=0.9),
            lambda: torch.randn(64, 64),
            lambda: torch.randint(10, (64,)),
            wrap,
        ),
        "convnet": training_step(
            convnet,
            partial(torch.optim.SGD, momentum=0.9),
            lambda: torch.randn(32, 1, 28, 28),
            lambda: torch.randint(10, (32,)),
            wrap,
        ),
        "GPT": training_step(
            GPT,
            torch.optim.AdamW,
            lambda: torch.randint(64, (8, 32)),
            lambda: torch.randint(64, (8, 32)),
            wrap,
        ),
        "tiny MLP": training_step(
            tiny_mlp,
            torch.optim.AdamW,
            lambda: torch.randn(8, 16),
            lambda: torch.randint(10, (8,)),
            wrap,
        ),
        "tiny convnet": training_step(
            tiny_convnet,
            torch.optim.AdamW,
            lambda: torch.randn(4, 3, 16, 16),
            lambda: torch.randint(10, (4,)),
            wrap,
        ),
        "tiny GPT": training_step(
            partial(GPT, 32),
            torch.optim.AdamW,
            lambda: torch.randint(64, (4, 16)),
            lambda: torch.randint(64, (4, 16)),
            wrap,
        ),
    }


STEPS = steps()
