# SPDX-License-Identifier: BSD-3-Clause
"""A copy without a wait, under two schedules."""

import torch

from torch_openreg.testing import schedule


def mean_of_squares(x: torch.Tensor) -> float:
    """Reads the result of a copy without a wait."""
    host = torch.zeros(x.shape, pin_memory=True)
    host.copy_(x * x, non_blocking=True)  # no wait follows
    return host.mean().item()


x = torch.full((8,), 3.0, device="openreg")
with schedule("lazy"):
    print(mean_of_squares(x))
    # prints: 0.0
with schedule("random:1"):
    first = mean_of_squares(x)
with schedule("random:1"):
    print(mean_of_squares(x) == first)
    # prints: True
