# SPDX-License-Identifier: BSD-3-Clause
"""A kernel that fails on one rank: each rank with wrong numbers gets an error."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel

from support.failing_training import FIRST, STEPS, forget_failures, numbers
from support.ranks import run_ranks
from torch_openreg.testing import inject_failure

pytestmark = pytest.mark.differs_in_process("occl", run=False)


def part() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4)).to(FIRST)


def batch(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    given, wanted = (torch.randn(8, 4, generator=generator) for _ in range(2))
    return given.to(FIRST), wanted.to(FIRST)


def train_with_ddp(rank: int) -> list[float]:
    torch.manual_seed(0)
    model = DistributedDataParallel(part())
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    losses = []
    for step in range(STEPS):
        given, wanted = batch(2 * step + rank)
        optimizer.zero_grad()
        loss = mse_loss(model(given), wanted)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return numbers(losses, model.parameters())


def train_in_a_pipeline(rank: int) -> list[float]:
    torch.manual_seed(rank)
    model = part()
    stage = PipelineStage(model, rank, 2, torch.device(FIRST))
    schedule = Schedule1F1B(stage, 2, loss_fn=mse_loss)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    losses: list[torch.Tensor] = []
    for step in range(STEPS):
        given, wanted = batch(step)
        optimizer.zero_grad()
        if rank == 0:
            schedule.step(given)
        else:
            schedule.step(target=wanted, losses=losses)
        optimizer.step()
    return numbers(losses, model.parameters())


def run_once(rank: int, train: Callable[[int], list[float]], file: Path) -> list[float]:
    """Trains in a separate group, because a failure breaks it."""
    dist.init_process_group(
        "occl",
        store=dist.FileStore(str(file), 2),
        rank=rank,
        world_size=2,
        timeout=datetime.timedelta(seconds=20),
    )
    try:
        return train(rank)
    finally:
        dist.destroy_process_group()


def sweep(
    rank: int, train: Callable[[int], list[float]], folder: Path, stride: int
) -> tuple[int, list[tuple[int, int]]]:
    """Fails each launch of each rank in turn, or each `stride`-th.

    Returns the number of runs that raised an error here, and the rank and launch of the
    runs that ended with different values without an error.
    """
    run_once(rank, train, folder / "first")  # caches the shapes of results
    with inject_failure("launch", first=2**40) as counted:
        expected = run_once(rank, train, folder / "expected")
    (folder / f"launches of {rank}").write_text(str(counted.calls))
    assert run_once(rank, train, folder / "again") == expected
    raised, silent = 0, []
    for failing in range(2):
        launches = int((folder / f"launches of {failing}").read_text())
        for launch in range(1, launches + 1, stride):
            first = launch if rank == failing else 2**40
            try:
                with inject_failure("launch", first=first):
                    values = run_once(rank, train, folder / f"{failing} {launch}")
            except RuntimeError as error:
                # The other rank is notified of the failure, or detects the end of this
                # one.
                if rank == failing and "injected failure" not in str(error):
                    raise
                raised += 1
            else:
                if values != expected:
                    silent.append((failing, launch))
            forget_failures()
    return raised, silent


@pytest.mark.timeout(300)
@pytest.mark.parametrize("stride", [7, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("train", [train_with_ddp, train_in_a_pipeline])
def test_training_raises_wherever_a_launch_of_a_rank_fails(
    train: Callable[[int], list[float]],
    stride: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENREG_INLINE_BYTES", "0")
    monkeypatch.setenv("OPENREG_FLIGHT_FILES", "0")
    ranks = run_ranks(sweep, 2, train, tmp_path, stride, backend=None, seconds=280)
    for raised, silent in ranks:
        assert raised > 0
        assert silent == []
