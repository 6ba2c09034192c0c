# SPDX-License-Identifier: BSD-3-Clause
"""A sum of losses keeps the graph of each, with all that was saved for backward."""

from __future__ import annotations

import torch

from torch_openreg.testing import assert_no_leak


# [docs: program]
class Wrong:
    """Adds up losses, and keeps their graphs."""

    def __init__(self) -> None:
        self.total = torch.zeros((), device="openreg")

    def add(self, loss: torch.Tensor) -> None:
        """Counts a loss."""
        self.total = self.total + loss


class Right(Wrong):
    """Adds up their values."""

    def add(self, loss: torch.Tensor) -> None:
        """Counts a loss."""
        self.total = self.total + loss.detach()


def step(weight: torch.Tensor, x: torch.Tensor, losses: Wrong) -> None:
    """Computes a loss, and has it counted."""
    hidden = torch.tanh(x @ weight)
    losses.add(hidden.square().mean())


# [docs: end]


def main() -> None:
    """Prints the memory in use after each step, and what is left of the last one."""
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
