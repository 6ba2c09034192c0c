# SPDX-License-Identifier: BSD-3-Clause
"""Many ranks on few cores, many streams, two groups at a time: no deadlocks.

Each case runs through shared memory, and through gloo.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable

import pytest
import torch
import torch.distributed as dist

from openreg_distributed import Options
from support.latches import Latch
from support.ranks import run_ranks

pytestmark = pytest.mark.differs_in_process("occl", run=False)

DEVICE = "openreg"
LARGE = 1 << 24  # elements, 64 MiB
LIMIT = datetime.timedelta(seconds=60)
STREAMS = 40  # more than PyTorch's pool of 32 streams


def total(ranks: int) -> float:
    return ranks * (ranks + 1) / 2


def shares_memory(group: dist.ProcessGroup) -> bool:
    return group._get_backend(torch.device(DEVICE)).shares_memory


def all_send_before_they_receive(group: dist.ProcessGroup) -> None:
    rank, ranks = group.rank(), group.size()
    given = torch.full((LARGE,), float(rank), device=DEVICE)
    received = torch.empty_like(given)
    work = dist.isend(given, (rank + 1) % ranks, group=group)
    if shares_memory(group):  # with gloo, as with NCCL, the send waits for the receive
        work.wait()
    dist.recv(received, (rank - 1) % ranks, group=group)
    work.wait()
    for end in (received[:3], received[-3:]):
        assert end.tolist() == [(rank - 1) % ranks] * 3


def all_send_to_all_at_once(group: dist.ProcessGroup) -> None:
    rank, ranks = group.rank(), group.size()
    others = [each for each in range(ranks) if each != rank]
    given = torch.full((LARGE // 8,), float(rank), device=DEVICE)
    received = [torch.empty_like(given) for _ in others]
    works = [dist.isend(given, other, group=group) for other in others]
    # Each rank uses a different order.
    for other, each in reversed([*zip(others, received, strict=True)]):
        works.append(dist.irecv(each, other, group=group))
    for work in works:
        work.wait()
    assert [each[-1].item() for each in received] == others


def more_streams_than_pytorch_has(group: dist.ProcessGroup) -> None:
    from openreg_runtime import Stream

    rank = group.rank()
    streams = [torch.Stream(DEVICE) for _ in range(STREAMS)]
    tensors = [torch.full((500,), rank + 1.0, device=DEVICE) for _ in streams]
    (tensors[0] * 2 + 1).tolist()  # the first calls of operators are not enqueued
    torch.accelerator.synchronize()
    latches = [
        Latch(Stream.from_handle(handle))
        for handle in {each.native_handle for each in streams}
    ]
    results = []
    for stream, tensor in zip(streams, tensors, strict=True):
        with stream:
            work = dist.all_reduce(tensor, group=group, async_op=True)
            work.wait()
            results.append(tensor * 2 + 1)
    # Streams are released in reverse, and the order differs on each rank.
    for latch in latches if rank % 2 else reversed(latches):
        latch.release()
    torch.accelerator.synchronize()
    for result in results:
        assert result[-1].item() == 2 * total(group.size()) + 1


def two_groups_in_another_order_on_each_rank(group: dist.ProcessGroup) -> None:
    rank, ranks = group.rank(), group.size()
    options = Options(share_memory=shares_memory(group))
    other = dist.new_group(list(range(ranks)), pg_options=options)
    streams = [torch.Stream(DEVICE) for _ in range(2)]
    for turn in range(20):
        tensors = [torch.full((3000,), rank + 1.0, device=DEVICE) for _ in range(2)]
        torch.accelerator.synchronize()
        works = {}
        for place in (0, 1) if (rank + turn) % 2 else (1, 0):
            with streams[place]:
                works[place] = dist.all_reduce(
                    tensors[place], group=(group, other)[place], async_op=True
                )
        for place in (1, 0) if (rank + turn) % 2 else (0, 1):
            with streams[place]:
                works[place].wait()
        torch.accelerator.synchronize()
        assert [each[-1].item() for each in tensors] == [total(ranks)] * 2
    dist.destroy_process_group(other)


def coalesced_calls_of_all_kinds(group: dist.ProcessGroup) -> None:
    rank, ranks = group.rank(), group.size()
    tensors = [torch.full((1000,), rank + 1.0, device=DEVICE) for _ in range(8)]
    with dist._coalescing_manager(group, torch.device(DEVICE, 0), True) as manager:
        for tensor in tensors:
            dist.all_reduce(tensor, group=group)
    manager.wait()
    assert [each[-1].item() for each in tensors] == [total(ranks)] * 8
    for size in (1, LARGE // 16):
        given = torch.full((size,), float(rank), device=DEVICE)
        received = [torch.empty_like(given) for _ in range(ranks)]
        # Each rank exchanges with all, including itself.
        ops = [dist.P2POp(dist.isend, given, each, group) for each in range(ranks)]
        ops += [
            dist.P2POp(dist.irecv, received[each], each, group)
            for each in reversed(range(ranks))
        ]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        assert [each[-1].item() for each in received] == [*range(ranks)]


CASES: list[Callable[[dist.ProcessGroup], None]] = [
    all_send_before_they_receive,
    all_send_to_all_at_once,
    more_streams_than_pytorch_has,
    two_groups_in_another_order_on_each_rank,
    coalesced_calls_of_all_kinds,
]


def every_case(rank: int) -> dict[str, float]:
    """Returns the time of each case."""
    ranks = list(range(dist.get_world_size()))
    seconds = {}
    for share in (True, False):
        options = Options(share_memory=share)
        group = dist.new_group(ranks, LIMIT, "occl", options)
        assert shares_memory(group) == share
        for case in CASES:
            start = time.monotonic()
            case(group)
            name = f"{case.__name__}, {'shared memory' if share else 'gloo'}"
            seconds[name] = time.monotonic() - start
        dist.destroy_process_group(group)
    return seconds


@pytest.mark.timeout(300)
def test_nothing_waits_for_ever():
    run_ranks(every_case, 2, seconds=280)
