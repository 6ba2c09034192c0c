# SPDX-License-Identifier: BSD-3-Clause
"""Twenty small models whose training has no missing wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


class Model(NamedTuple):
    """A model.

    Attributes:
        make: Returns it, on the CPU.
        inputs: The shape of a batch.
        loss: Returns the loss of a batch.
    """

    make: Callable[[], nn.Module]
    inputs: tuple[int, ...]
    loss: Callable[[nn.Module, Tensor], Tensor]


def square(model: nn.Module, x: Tensor) -> Tensor:
    """Returns the mean square of the output."""
    output: Tensor = model(x)
    return output.square().mean()


def classes(model: nn.Module, x: Tensor) -> Tensor:
    """Returns the cross entropy to the largest input of each row."""
    target = x.flatten(1)[:, :4].argmax(1)
    return functional.cross_entropy(model(x), target)


def reconstruction(model: nn.Module, x: Tensor) -> Tensor:
    """Returns the error of an output with the shape of the input."""
    return functional.mse_loss(model(x), x)


class Last(nn.Module):
    """Returns the last step of a recurrent layer, as logits."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer
        self.head = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        steps, _ = self.layer(x)
        logits: Tensor = self.head(steps[:, -1])
        return logits


class Residual(nn.Module):
    """Adds its input to a block."""

    def __init__(self, *block: nn.Module) -> None:
        super().__init__()
        self.block = nn.Sequential(*block)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(x + self.block(x))


class Attention(nn.Module):
    """A causal block of a language model."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(16, 8)
        self.project = nn.Linear(8, 24)
        self.head = nn.Linear(8, 16)

    def forward(self, x: Tensor) -> Tensor:
        tokens = (x.abs() * 4).long().clamp(max=15)
        q, k, v = self.project(self.tokens(tokens)).chunk(3, -1)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        logits = self.head(mixed)[:, :-1].flatten(0, 1)
        return functional.cross_entropy(logits, tokens[:, 1:].flatten())


class Variational(nn.Module):
    """An autoencoder that draws its code."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Linear(8, 8)
        self.decode = nn.Linear(4, 8)

    def forward(self, x: Tensor) -> Tensor:
        mean, scale = self.encode(x).chunk(2, -1)
        code = mean + torch.randn_like(mean) * scale.exp()
        decoded: Tensor = self.decode(code)
        return decoded


class Experts(nn.Module):
    """Sends each row to the expert of its largest gate."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(8, 3)
        self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        weights = self.gate(x).softmax(-1)
        chosen = weights.argmax(-1)
        output = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows = (chosen == number).nonzero().flatten()  # waits
            routed = expert(x[rows]) * weights[rows, number, None]
            output = output.index_add(0, rows, routed)
        return output


class Graph(nn.Module):
    """Sums the neighbours of the nodes of a ring."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        source = torch.arange(len(x), device=x.device)
        target = (source + 1) % len(x)
        return torch.zeros_like(x).index_add(0, target, self.layer(x[source]))


class Checkpointed(nn.Module):
    """Computes its block again in the backward pass, with the same dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.3), nn.Linear(16, 8))

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = checkpoint(self.block, x, use_reentrant=False)
        return output


class Triplet(nn.Module):
    """Distances between embeddings of the rows and their neighbours."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(8, 8), nn.Tanh())

    def forward(self, x: Tensor) -> Tensor:
        anchor = self.embed(x)
        return functional.triplet_margin_loss(
            anchor, anchor.roll(1, 0), anchor.roll(3, 0)
        )


class Pairs(nn.Module):
    """Combines the halves of each row."""

    def __init__(self) -> None:
        super().__init__()
        self.combine = nn.Bilinear(4, 4, 3)

    def forward(self, x: Tensor) -> Tensor:
        combined: Tensor = self.combine(*x.chunk(2, -1))
        return combined


class Skip(nn.Module):
    """A small U-Net."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, 6, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(6, 3, 2, stride=2)
        self.mix = nn.Conv2d(6, 3, 1)

    def forward(self, x: Tensor) -> Tensor:
        raised = self.up(functional.relu(self.down(x)))
        mixed: Tensor = self.mix(torch.cat([raised, x], 1))
        return mixed


def _convnet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(6 * 16, 4),
    )


def _value(model: nn.Module, x: Tensor) -> Tensor:
    loss: Tensor = model(x)
    return loss


ROWS, IMAGES, STEPS = (6, 8), (2, 3, 8, 8), (3, 5, 8)
MODELS = {
    "linear regression": Model(lambda: nn.Linear(8, 1), ROWS, square),
    "multilayer perceptron": Model(
        lambda: nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)),
        ROWS,
        classes,
    ),
    "dropout": Model(
        lambda: nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.5), nn.Linear(16, 4)),
        ROWS,
        classes,
    ),
    "layer norm": Model(
        lambda: nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.SiLU()),
        ROWS,
        square,
    ),
    "convolutions with batch norm": Model(_convnet, IMAGES, classes),
    "residual block": Model(
        lambda: Residual(nn.Conv2d(3, 3, 3, padding=1), nn.BatchNorm2d(3)),
        IMAGES,
        square,
    ),
    "separable convolutions": Model(
        lambda: nn.Sequential(nn.Conv2d(3, 3, 3, groups=3), nn.Conv2d(3, 6, 1)),
        IMAGES,
        square,
    ),
    "convolutions in three dimensions": Model(
        lambda: nn.Sequential(nn.Conv3d(2, 4, 3), nn.GroupNorm(2, 4), nn.ReLU()),
        (2, 2, 5, 5, 5),
        square,
    ),
    "U-Net": Model(Skip, IMAGES, reconstruction),
    "autoencoder": Model(
        lambda: nn.Sequential(nn.Linear(8, 3), nn.Tanh(), nn.Linear(3, 8)),
        ROWS,
        reconstruction,
    ),
    "variational autoencoder": Model(Variational, ROWS, reconstruction),
    "LSTM": Model(lambda: Last(nn.LSTM(8, 8, batch_first=True)), STEPS, classes),
    "GRU": Model(lambda: Last(nn.GRU(8, 8, batch_first=True)), STEPS, classes),
    "transformer encoder": Model(
        lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),
        STEPS,
        square,
    ),
    "language model": Model(Attention, (3, 6), _value),
    "mixture of experts": Model(Experts, ROWS, square),
    "graph network": Model(Graph, ROWS, square),
    "checkpointed block": Model(Checkpointed, ROWS, square),
    "triplets": Model(Triplet, ROWS, _value),
    "bilinear": Model(Pairs, ROWS, square),
}
