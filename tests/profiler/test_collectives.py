# SPDX-License-Identifier: BSD-3-Clause
"""Collectives of two ranks in torch.profiler and in utilization()."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import profile

import openreg_profiler
from profiler.conftest import BOTH, Trace
from support.ranks import run_ranks

pytestmark = pytest.mark.differs_in_process("occl", run=False)

RANKS = 2


def trace_of(result: profile) -> Trace:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        result.export_chrome_trace(str(path))
        return Trace(path.read_text(encoding="utf-8"))


def unlinked(trace: Trace) -> list[str]:
    """Returns the names of device work without an operator."""
    operators = {event["args"]["External id"] for event in trace.of("cpu_op")}
    return [
        event["name"]
        for event in trace.work
        if event["args"].get("External id") not in operators
    ]


def collectives_have_names_and_operators(rank: int) -> None:
    x = torch.ones(50_000, device="openreg")
    parts = [torch.empty_like(x) for _ in range(RANKS)]
    dist.all_reduce(x)
    torch.openreg.synchronize()
    with profile(activities=BOTH) as result:
        dist.all_reduce(x)
        work = dist.all_reduce(x, async_op=True)
        work.wait()
        dist.all_gather(parts, x)
        dist.broadcast(x, 0)
        if rank == 0:
            dist.send(x, 1)
        else:
            dist.recv(x, 0)
        torch.openreg.synchronize()
    trace = trace_of(result)
    operators = {
        event["args"]["External id"]: event["name"] for event in trace.of("cpu_op")
    }
    assert unlinked(trace) == []
    found = {event["name"]: event for event in trace.work}
    kernels = {
        "occl:all_reduce": "c10d::allreduce_",
        "occl:all_gather": "c10d::allgather_",
        "occl:broadcast": "c10d::broadcast_",
        **({"occl:send": "c10d::send"} if rank == 0 else {"occl:recv": "c10d::recv_"}),
    }
    for name, operator in kernels.items():
        assert operators[found[name]["args"]["External id"]] == operator
    # In place: reads and writes the same memory.
    assert found["occl:all_reduce"]["args"]["bytes"] == 2 * x.nbytes
    assert Counter(trace.names())["occl:all_reduce"] == 2
    assert {row.key for row in result.key_averages()} >= kernels.keys()


def late_calls_are_there_once(rank: int) -> None:
    store = dist.distributed_c10d._get_default_store()
    x = torch.ones(100, device="openreg")
    dist.all_reduce(x)
    torch.openreg.synchronize()
    with profile(activities=BOTH) as result:
        for call in range(5):
            if rank == 1:
                store.wait([f"begun {call}"])
            # Rank 0 first tries this on its thread, and then enqueues it.
            work = dist.all_reduce(x, async_op=True)
            if rank == 0:
                store.set(f"begun {call}", "")
            work.wait()
            torch.openreg.synchronize()
    trace = trace_of(result)
    assert trace.names() == ["occl:all_reduce"] * 5
    assert unlinked(trace) == []
    assert x.cpu().equal(torch.full((100,), 2.0**6))


def a_training_step_has_no_orphans(rank: int) -> None:
    del rank
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))
    model = DistributedDataParallel(model.to("openreg"))
    x = torch.rand(16, 64, device="openreg")
    for _ in range(2):
        model(x).sum().backward()
    with profile(activities=BOTH) as result:
        model(x).sum().backward()
        torch.openreg.synchronize()
    trace = trace_of(result)
    assert unlinked(trace) == []
    assert "occl:all_reduce" in trace.names()


def collective_that_nothing_overlaps_is_named_first(rank: int) -> None:
    del rank
    gradients = torch.rand(8_000_000, device="openreg")
    x = torch.rand(64, 64, device="openreg")
    dist.all_reduce(gradients)
    torch.openreg.synchronize()
    with profile(activities=BOTH, with_stack=True) as result:
        for _ in range(5):
            x = torch.tanh(x @ x)
            dist.all_reduce(gradients)  # the waste
        torch.openreg.synchronize()
    first = openreg_profiler.utilization(result).changes[0]
    (line,) = (
        number
        for number, text in enumerate(Path(__file__).read_text().splitlines(), 1)
        if text.endswith("(gradients)  # the waste")
    )
    assert (first.cause, first.line) == ("collective", f"{Path(__file__).name}:{line}")


def test_collectives_have_names_and_operators() -> None:
    run_ranks(collectives_have_names_and_operators, RANKS, backend="occl")


def test_calls_that_another_rank_is_late_for_are_there_once() -> None:
    run_ranks(late_calls_are_there_once, RANKS, backend="occl")


def test_training_step_of_ranks_has_no_orphans() -> None:
    run_ranks(a_training_step_has_no_orphans, RANKS, backend="occl")


def test_collective_that_nothing_overlaps_is_named_first() -> None:
    run_ranks(collective_that_nothing_overlaps_is_named_first, RANKS, backend="occl")
