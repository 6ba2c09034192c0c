# SPDX-License-Identifier: BSD-3-Clause
"""Methods that c10d::Backend has since torch 2.14."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

from support.ranks import run_ranks
from support.versions import since

pytestmark = [since(2, 14), pytest.mark.differs_in_process("occl")]


def gather(rank: int) -> list[int] | None:
    part = torch.arange(2, device="openreg") + 2 * rank
    shape = (2, 2) if rank == 1 else (0,)
    whole = torch.zeros(shape, dtype=part.dtype, device="openreg")
    dist.gather_single(part, whole if rank == 1 else None, dst=1)
    return whole.flatten().tolist() if rank == 1 else None


def test_gather_into_a_single_tensor():
    assert run_ranks(gather, 2, backend="occl") == [None, [0, 1, 2, 3]]


def too_small(rank: int) -> None:
    part = torch.ones(2, device="openreg")
    backend = dist.group.WORLD._get_backend(torch.device("openreg"))
    with pytest.raises(RuntimeError, match="needs tensors of n and 1 \\* n elements"):
        backend.gather_single(torch.ones(3, device="openreg"), part)


def test_gather_of_another_size_is_refused():
    run_ranks(too_small, 1, backend="occl")
