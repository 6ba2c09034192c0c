# SPDX-License-Identifier: BSD-3-Clause
"""Schedules of operators: missing waits show, and correct programs keep their bits."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from torch_openreg.testing import run_ranks, schedule

needs_occl = pytest.mark.differs_in_process("occl", run=False)
NAMES = ["lazy", *(f"random:{seed}" for seed in range(6))]


def copy_without_wait() -> float:
    """Reads pinned memory before the copy has run: wrong."""
    x = torch.full((4,), 3.0, device="openreg")
    host = torch.zeros(4, pin_memory=True)
    host.copy_(x * x, non_blocking=True)
    mean = host.mean().item()
    torch.accelerator.synchronize()
    return mean


def side_without_wait() -> float:
    """Reads the result of another stream without an event: wrong."""
    side = torch.Stream("openreg")
    x = torch.zeros(4, device="openreg")
    side.wait_stream(torch.accelerator.current_stream())
    with side:
        x.fill_(2)
    total = x.sum().item()
    torch.accelerator.synchronize()
    return total


def trained() -> list[torch.Tensor]:
    """Returns the parameters of a small model after five steps."""
    torch.manual_seed(3)
    model = nn.Sequential(
        nn.Linear(8, 16), nn.Tanh(), nn.Dropout(0.2), nn.Linear(16, 3)
    )
    model.to("openreg")
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    side = torch.Stream("openreg")
    for step in range(5):
        batch = torch.randn(4, 8).pin_memory()
        with side:
            x = batch.to("openreg", non_blocking=True)
        torch.accelerator.current_stream().wait_stream(side)
        x.record_stream(torch.accelerator.current_stream())
        loss = nn.functional.cross_entropy(
            model(x), torch.tensor([0, 1, 2, step % 3], device="openreg")
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return [each.detach().cpu() for each in model.parameters()]


@pytest.mark.parametrize("bug", [copy_without_wait, side_without_wait])
def test_lazy_shows_a_missing_wait_in_the_first_run(bug: Callable[[], float]) -> None:
    with schedule("lazy"):
        assert bug() == 0


@pytest.mark.parametrize("bug", [copy_without_wait, side_without_wait])
def test_some_seed_shows_a_missing_wait(bug: Callable[[], float]) -> None:
    results = set()
    for seed in range(20):
        with schedule(f"random:{seed}"):
            results.add(bug())
    assert 0 in results


@pytest.mark.parametrize("name", NAMES)
def test_training_gives_the_same_bits(name: str) -> None:
    expected = trained()
    with schedule(name):
        for got, want in zip(trained(), expected, strict=True):
            assert got.equal(want)


def test_lazy_enqueues_the_first_operator_on_an_idle_stream() -> None:
    with schedule("lazy"):
        x = torch.ones(3, device="openreg")
        assert not torch.openreg.current_stream().query()
        assert x.tolist() == [1, 1, 1]
        assert torch.openreg.current_stream().query()


def test_allocation_that_finds_no_memory_runs_pending_work() -> None:
    from torch_openreg.testing import memory_limit

    side = torch.Stream("openreg")
    with schedule("lazy"), memory_limit(64 * 2**20):
        for _ in range(8):
            x = torch.ones(5 * 2**20, device="openreg")  # 20 MiB
            side.wait_stream(torch.accelerator.current_stream())
            with side:
                y = x[:4] * 2
            x.record_stream(side)
            del x
        side.synchronize()
        assert y.tolist() == [2, 2, 2, 2]


@pytest.mark.parametrize("name", ["", "Lazy", "random:", "random:-1", "random:x"])
def test_other_names_are_refused(name: str) -> None:
    expected = "expected 'eager', 'lazy' or 'random:SEED'"
    with pytest.raises(ValueError, match=expected), schedule(name):
        pass


def reduced(rank: int, name: str) -> list[float]:
    """Runs collectives, messages and host waits under a schedule."""
    from torch import distributed

    with schedule(name):
        x = torch.full((8,), float(rank + 1), device="openreg")
        pending = [distributed.all_reduce(x, async_op=True)]
        y = torch.arange(8.0, device="openreg") * (rank + 1)
        pending[0].wait()
        total = x + y
        distributed.all_reduce(total)
        gathered = [torch.empty_like(total) for _ in range(2)]
        distributed.all_gather(gathered, total + rank)
        distributed.barrier()
        return torch.cat(gathered).tolist()


@needs_occl
@pytest.mark.parametrize("name", ["lazy", "random:0", "random:1", "random:2"])
def test_collectives_give_the_same_bits(name: str) -> None:
    results = run_ranks(reduced, 2, name, start_method="forkserver")
    total = [6 + 3.0 * i for i in range(8)]
    assert results == [total + [each + 1 for each in total]] * 2


def ordered(rank: int, names: list[str]) -> list[list[str]]:
    """Returns the orders of this rank's kernels, each name twenty times."""
    from torch import distributed

    import openreg_runtime

    def order(name: str) -> str:
        ran: list[str] = []
        with schedule(name):
            streams = [openreg_runtime.Stream() for _ in range(3)]
            for _ in range(5):
                for stream, letter in zip(streams, "abc", strict=True):
                    stream.launch(ran.append, letter)
            distributed.all_reduce(torch.ones(4, device="openreg"))
            streams[0].synchronize()
            ran.append("-")
        return "".join(ran)

    return [[order(name) for _ in range(20)] for name in names]


@needs_occl
def test_seed_gives_each_rank_one_order_of_its_own() -> None:
    names = [f"random:{seed}" for seed in range(4)]
    ranks = run_ranks(ordered, 2, names, start_method="forkserver")
    for orders in zip(*ranks, strict=True):
        assert [len(set(each)) for each in orders] == [1, 1]
    assert ranks[0] != ranks[1]


Trace = list[tuple[str, str, int | None]]


def traces(rank: int, name: str, runs: int) -> list[Trace]:
    """Returns the commands of this rank in the order of their starts, for each run."""
    from torch import distributed

    from openreg_runtime import activity

    side = torch.Stream("openreg")
    weight = torch.ones(8, 8, device="openreg", requires_grad=True)

    def step() -> None:
        batch = torch.full((4, 8), rank + 1.0).pin_memory()
        with side:
            x = batch.to("openreg", non_blocking=True)
        torch.accelerator.current_stream().wait_stream(side)
        x.record_stream(torch.accelerator.current_stream())
        (x @ weight).square().mean().backward()
        assert weight.grad is not None
        pending = distributed.all_reduce(weight.grad, async_op=True)
        with side:
            (batch.to("openreg", non_blocking=True) * 2).sum()
        pending.wait()
        with torch.no_grad():
            weight.sub_(weight.grad, alpha=0.01)
        weight.grad = None
        weight.sum().item()

    def run() -> Trace:
        distributed.barrier()  # a rank that is late does not delay the other one
        torch.accelerator.synchronize()
        kinds = ("kernel", "memcpy", "memset", "host_function", "wait")
        with activity.record(kinds) as recording:
            with schedule(name):
                for _ in range(3):
                    step()
            records = recording.take()
        return [(each.kind, each.name, each.stream) for each in records]

    run()  # the first calls of operators
    return [run() for _ in range(runs)]


@needs_occl
def test_seed_gives_each_rank_of_a_training_the_same_trace_in_twenty_runs() -> None:
    seeds = [
        run_ranks(traces, 2, f"random:{seed}", 20, start_method="forkserver")
        for seed in (1, 2)
    ]
    for ranks in seeds:
        for runs in ranks:
            assert len(runs) == 20
            assert len(runs[0]) > 50
            assert all(each == runs[0] for each in runs)
    # Another rank and another seed draw other orders of the same work, except for
    # waits: waiting for an event that has passed leaves no record.
    orders = [
        tuple(each for each in ranks[rank][0] if each[0] != "wait")
        for ranks in seeds
        for rank in range(2)
    ]
    assert len(set(orders)) == 4
    assert len({tuple(sorted(each)) for each in orders}) == 1
