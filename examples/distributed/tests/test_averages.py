# SPDX-License-Identifier: BSD-3-Clause
"""A test of a function that runs on several ranks."""

from __future__ import annotations

import torch
import torch.distributed as dist


def average(x: torch.Tensor) -> torch.Tensor:
    """Returns the mean over all ranks, as a library function might."""
    dist.all_reduce(x)
    return x / dist.get_world_size()


# [docs: ranks]
def averages(rank: int, device: str) -> list[float]:
    return average(torch.full((2,), float(rank), device=device)).tolist()


def test_average_includes_all_ranks(openreg_ranks):
    assert openreg_ranks(averages, 2, "openreg") == [[0.5, 0.5]] * 2
    assert openreg_ranks(averages, 2, "cpu", backend="gloo") == [[0.5, 0.5]] * 2


# [docs: end]
