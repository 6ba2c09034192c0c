# SPDX-License-Identifier: BSD-3-Clause
"""A leak: a sum of losses keeps every autograd graph and its saved tensors."""

from __future__ import annotations

import torch

from torch_openreg.testing import assert_no_leak


# [docs: program]
class Wrong:
    """Sums losses and keeps their graphs."""

    def __init__(self) -> None:
        self.total = torch.zeros((), device="openreg")

    def add(self, loss: torch.Tensor) -> None:
        """Adds a loss."""
        self.total = self.total + loss


class Right(Wrong):
    """Sums only the values of losses."""

    def add(self, loss: torch.Tensor) -> None:
        """Adds a loss."""
        self.total = self.total + loss.detach()


def step(weight: torch.Tensor, x: torch.Tensor, losses: Wrong) -> None:
    """Computes a loss and adds it to the sum."""
    hidden = torch.tanh(x @ weight)
    losses.add(hidden.square().mean())


# [docs: end]


def main() -> None:
    """Prints memory in use after each step and the leak report of the last step."""
    weight = torch.randn(64, 64, device="openreg", requires_grad=True)
    x = torch.randn(64, 64, device="openreg")
    for kind in (Wrong, Right):
        losses = kind()
        print(kind.__name__)
        for _ in range(4):
            step(weight, x, losses)
            print(f"  {torch.accelerator.memory_allocated()} bytes")
        try:
            with assert_no_leak():
                step(weight, x, losses)
        except AssertionError as error:
            print(error)


if __name__ == "__main__":
    main()
