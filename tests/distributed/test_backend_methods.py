# SPDX-License-Identifier: BSD-3-Clause
"""Methods that c10d::Backend has since torch 2.14."""

from __future__ import annotations

import os
import time
from functools import partial

import pytest
import torch
import torch.distributed as dist

import openreg_distributed
from support.limited_groups import begin
from support.ranks import run_each_rank, run_ranks
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


def fail(rank: int) -> list[str]:
    begin(2, share_memory=True)
    if rank == 1:
        time.sleep(6)
        os._exit(0)  # does not call the collective
    called: list[str] = []
    backend = dist.group.WORLD._get_backend(torch.device("openreg"))
    for number, name in enumerate(["first", "second", "removed"]):
        backend.register_abort_hook(number, partial(called.append, name))
    backend.unregister_abort_hook(2)
    x = torch.ones(2, device="openreg")
    dist.all_reduce(x)
    with pytest.raises(RuntimeError, match="all_reduce number 2 of group '0'"):
        (x + 1).tolist()
    dist.destroy_process_group()
    return called


def test_abort_hooks_run_in_order_when_a_call_fails():
    first, _ = run_each_rank(fail, 2, backend=None)
    assert not first.failure, first.failure
    assert first.value == ["first", "second"]


def test_a_copy_of_options_has_all_fields():
    options = openreg_distributed.Options(share_memory=False)
    assert options.__copy__().share_memory is False
