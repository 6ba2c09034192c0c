# SPDX-License-Identifier: BSD-3-Clause
"""Ranks of one host share memory: equal bits, large messages, and cleanup."""

from __future__ import annotations

import contextlib
import datetime
import os
import sys
import time
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from openreg_distributed import Options
from support.programs import shared_memory
from support.ranks import run_ranks

pytestmark = pytest.mark.differs_in_process("occl", run=False)

DEVICE = "openreg"


def backend_of(group: dist.ProcessGroup | None = None) -> object:
    return (group or dist.group.WORLD)._get_backend(torch.device(DEVICE))


def random(rank: int, count: int, dtype: torch.dtype) -> torch.Tensor:
    generator = torch.Generator().manual_seed(rank)
    return (torch.randn(count, generator=generator) * 100).to(dtype)


def sum_in_order(tensors: list[torch.Tensor]) -> torch.Tensor:
    result = tensors[0]
    for tensor in tensors[1:]:
        result = result + tensor
    return result


def groups_share_memory(rank: int) -> None:
    dist.init_process_group(device_id=torch.device(DEVICE, rank))
    assert backend_of().shares_memory
    pair = dist.new_group([0, 1])
    assert backend_of(pair).shares_memory
    part = dist.split_group(split_ranks=[[0, 1]])
    assert backend_of(part).shares_memory
    apart = Options(share_memory=False)
    through_gloo = dist.new_group([0, 1], pg_options=apart)
    assert not backend_of(through_gloo).shares_memory
    part_through_gloo = dist.split_group(split_ranks=[[0, 1]], pg_options=apart)
    assert not backend_of(part_through_gloo).shares_memory
    for group in (pair, part, through_gloo, part_through_gloo):
        tensor = torch.full((3,), rank + 1.0, device=DEVICE)
        dist.all_reduce(tensor, group=group)
        assert tensor.tolist() == [3.0] * 3
    dist.destroy_process_group()


def one_rank_that_may_not_decides(rank: int) -> None:
    dist.init_process_group("occl", pg_options=Options(share_memory=rank == 0))
    assert not backend_of().shares_memory
    tensor = torch.full((3,), rank + 1.0, device=DEVICE)
    dist.all_reduce(tensor)
    assert tensor.tolist() == [3.0] * 3
    dist.destroy_process_group()


def results_are_equal_to_the_bit(rank: int) -> None:
    ranks = dist.get_world_size()
    # One step, one piece, and several of them with an odd end.
    for count in (1, 257, 50_000, 1_500_001):
        for dtype in (torch.float32, torch.bfloat16, torch.float64):
            given = [random(each, count, dtype) for each in range(ranks)]
            wanted = sum_in_order(given)
            tensor = given[rank].to(DEVICE)
            dist.all_reduce(tensor)
            assert torch.equal(tensor.cpu(), wanted), (count, dtype)
            whole = torch.cat([given[rank]] * ranks).to(DEVICE)
            part = torch.empty(count, dtype=dtype, device=DEVICE)
            dist.reduce_scatter_single(part, whole)
            assert torch.equal(part.cpu(), wanted), (count, dtype)
            dist.reduce(given[rank].to(DEVICE), 0)


def large_data_goes_in_pieces(rank: int) -> None:
    ranks = dist.get_world_size()
    counts = [700_001, 3, 0, 1_400_000][:ranks]
    given = [random(each, count, torch.float32) for each, count in enumerate(counts)]
    outputs = [torch.empty_like(each, device=DEVICE) for each in given]
    dist.all_gather(outputs, given[rank].to(DEVICE))
    for output, wanted in zip(outputs, given, strict=True):
        assert torch.equal(output.cpu(), wanted)
    for root in range(ranks):
        tensor = (given[0] if rank == root else given[0] * 0).to(DEVICE)
        dist.broadcast(tensor, root)
        assert torch.equal(tensor.cpu(), given[0])
    parts = [random(each, 400_003, torch.float32) for each in range(ranks)]
    received = torch.empty(400_003, device=DEVICE)
    dist.scatter(
        received, [each.to(DEVICE) for each in parts] if rank == 1 else None, 1
    )
    assert torch.equal(received.cpu(), parts[rank])
    found = [torch.empty(400_003, device=DEVICE) for _ in parts] if rank == 1 else None
    dist.gather(received, found, 1)
    for output, wanted in zip(found or [], parts, strict=False):
        assert torch.equal(output.cpu(), wanted)
    # Ranks r and s exchange (r + 1) * (s + 1) times this count.
    sends = [
        [300_001 * (r + 1) * (to + 1) for to in range(ranks)] for r in range(ranks)
    ]
    inputs = [
        random(rank * ranks + to, n, torch.float32) for to, n in enumerate(sends[rank])
    ]
    outputs = [torch.empty(sends[r][rank], device=DEVICE) for r in range(ranks)]
    dist.all_to_all(outputs, [each.to(DEVICE) for each in inputs])
    for source, output in enumerate(outputs):
        wanted = random(source * ranks + rank, len(output), torch.float32)
        assert torch.equal(output.cpu(), wanted)


def parts_of_one_tensor(rank: int) -> None:
    ranks = dist.get_world_size()
    count = 600_000
    given = [random(each, count * ranks, torch.float32) for each in range(ranks)]
    own = slice(rank * count, (rank + 1) * count)
    tensor = given[rank].to(DEVICE)
    dist.reduce_scatter_single(tensor[own], tensor)
    wanted = sum_in_order(given)
    assert torch.equal(tensor[own].cpu(), wanted[own])
    dist.all_gather_single(tensor, tensor[own])
    assert torch.equal(tensor.cpu(), wanted)
    # The input is in the part of another rank.
    other = slice((rank + 1) % ranks * count, ((rank + 1) % ranks + 1) * count)
    tensor = given[rank].to(DEVICE)
    dist.all_gather_single(tensor, tensor[other])
    for source, found in enumerate(tensor.cpu().chunk(ranks)):
        begin = (source + 1) % ranks * count
        assert torch.equal(found, given[source][begin : begin + count])


def messages_are_found_by_tag(rank: int) -> None:
    sizes = (1 << 20, 5, 0, 300_000)
    values = [random(tag, size, torch.float32) for tag, size in enumerate(sizes)]
    if rank == 0:
        for tag, value in enumerate(values):
            dist.send(value.to(DEVICE), 1, tag=tag)
    if rank == 1:
        for tag in (3, 1, 0, 2):
            received = torch.empty(sizes[tag], device=DEVICE)
            dist.recv(received, 0, tag=tag)
            assert torch.equal(received.cpu(), values[tag]), tag


def equal_tags_keep_their_order(rank: int) -> None:
    values = [random(each, 100_000, torch.float32) for each in range(4)]
    received = [torch.empty(100_000, device=DEVICE) for _ in values]
    operation = dist.isend if rank == 0 else dist.irecv
    tensors = [each.to(DEVICE) for each in values] if rank == 0 else received
    if rank < 2:
        operations = [dist.P2POp(operation, each, 1 - rank) for each in tensors]
        for work in dist.batch_isend_irecv(operations):
            work.wait()
    if rank == 1:
        for found, wanted in zip(received, values, strict=True):
            assert torch.equal(found.cpu(), wanted)


def large_results_are_whole(rank: int) -> None:
    """Odd sizes and odd addresses, which are special for non-temporal stores."""
    ranks = dist.get_world_size()
    count = (9 << 20) + 7 + ranks
    places = iter(range(1, 20, 2))

    def empty(size: int) -> torch.Tensor:
        place = next(places)
        return torch.empty(size + place, dtype=torch.uint8, device=DEVICE)[place:]

    given = [random(each, count * ranks, torch.uint8) for each in range(ranks)]
    own = given[rank].to(DEVICE)
    parts = [each[:count] for each in given]

    tensor = empty(count * ranks)
    tensor.copy_(own)
    dist.broadcast(tensor, 1)
    assert torch.equal(tensor.cpu(), given[1])

    dist.all_gather_single(tensor, own[:count])
    assert torch.equal(tensor.cpu(), torch.cat(parts))
    tensor.view(ranks, count)[rank] += 1
    dist.all_gather_single(tensor, tensor.view(ranks, count)[rank])  # in place
    assert torch.equal(tensor.cpu(), torch.cat(parts) + 1)

    dist.all_to_all_single(tensor, own)
    wanted = [each.view(ranks, count)[rank] for each in given]
    assert torch.equal(tensor.cpu(), torch.cat(wanted))

    whole = empty(count * ranks)
    dist.scatter(whole, [each.to(DEVICE) for each in given] if rank == 0 else None)
    assert torch.equal(whole.cpu(), given[rank])

    all_of_them = [empty(count * ranks) for _ in given] if rank == 0 else None
    dist.gather(own, all_of_them)
    for found, source in zip(all_of_them or (), given, strict=False):
        assert torch.equal(found.cpu(), source)

    summed = empty(count * ranks)
    longer = torch.cat([own] * ranks)
    dist.reduce_scatter_single(summed, longer)
    assert torch.equal(summed.cpu(), sum_in_order(given))

    if rank == 0:
        dist.send(own, 1)
    elif rank == 1:
        dist.recv(whole, 0)
        assert torch.equal(whole.cpu(), given[0])


def all_send_before_they_receive(rank: int) -> None:
    ranks = dist.get_world_size()
    given = torch.full((1 << 22,), float(rank), device=DEVICE)
    received = torch.empty_like(given)
    # The stream comes to the receive when the send is done.
    dist.send(given, (rank + 1) % ranks)
    dist.recv(received, (rank - 1) % ranks)
    assert (received == (rank - 1) % ranks).all().item()


def a_large_message_of_any_rank(rank: int) -> None:
    ranks = dist.get_world_size()
    if rank:
        dist.send(random(rank, 500_000, torch.float32).to(DEVICE), 0, tag=4)
        return
    for _ in range(1, ranks):
        received = torch.empty(500_000, device=DEVICE)
        source = dist.recv(received, tag=4)
        assert torch.equal(received.cpu(), random(source, 500_000, torch.float32))


def a_forked_child_ends_nothing(rank: int) -> None:
    child = os.fork()
    if child == 0:
        try:
            dist.group.WORLD._get_backend(torch.device(DEVICE))
            dist.distributed_c10d._world.pg_map.clear()
        finally:
            sys.stdout.flush()
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    tensor = torch.ones(3, device=DEVICE)
    dist.all_reduce(tensor)
    assert tensor.tolist() == [dist.get_world_size()] * 3


def everything(rank: int) -> None:
    for case in (
        results_are_equal_to_the_bit,
        large_data_goes_in_pieces,
        parts_of_one_tensor,
        messages_are_found_by_tag,
        large_results_are_whole,
        equal_tags_keep_their_order,
        all_send_before_they_receive,
        a_large_message_of_any_rank,
        a_forked_child_ends_nothing,
    ):
        case(rank)
        dist.barrier()


def nothing_is_left(rank: int) -> None:
    def files() -> list[str]:
        folder = Path("/proc/self/fd")
        links = [each.readlink() for each in folder.iterdir() if each.is_symlink()]
        return [each.name for each in links if "occl" in each.name]

    dist.init_process_group("occl")
    assert backend_of().shares_memory
    tensor = torch.ones(1 << 20, device=DEVICE)
    dist.all_reduce(tensor)
    torch.accelerator.synchronize()
    assert not files()
    assert "memfd:occl" in Path("/proc/self/maps").read_text()
    dist.destroy_process_group()
    assert "memfd:occl" not in Path("/proc/self/maps").read_text()


def different_collectives(rank: int) -> None:
    tensor = torch.ones(10, device=DEVICE)
    if rank == 0:
        work = dist.all_reduce(tensor, async_op=True)
        wanted = "rank 1 ALLGATHER of 80 bytes.* rank 0 ALLREDUCE of 40 bytes"
    else:
        outputs = [torch.ones(10, device=DEVICE) for _ in range(2)]
        work = dist.all_gather(outputs, tensor, async_op=True)
        wanted = "rank 0 ALLREDUCE of 40 bytes.* rank 1 ALLGATHER|rank 0 has failed"
    with pytest.raises(dist.DistBackendError, match=wanted):
        work.wait(datetime.timedelta(seconds=30))


def different_collectives_without_a_wait(rank: int) -> None:
    # In the first call of each, neither rank waits for the other.
    tensor = torch.ones(10, device=DEVICE)
    if rank == 0:
        dist.broadcast(tensor, 0)
        wanted = "rank 1 REDUCE of 40 bytes.* rank 0 BROADCAST|rank 1 has failed"
    else:
        dist.reduce(tensor, 0)
        wanted = "rank 0 BROADCAST of 40 bytes.* rank 1 REDUCE|rank 0 has failed"
    work = dist.all_reduce(tensor, async_op=True)
    with pytest.raises(dist.DistBackendError, match=wanted):
        work.wait(datetime.timedelta(seconds=30))


def the_rest_of_a_message_is_nobodys(rank: int) -> None:
    count = 64 << 15  # 64 parts; the channel holds four
    for _ in range(3):
        group = dist.new_group()
        if rank == 1:
            for value in (1.0, 2.0):
                dist.isend(torch.full((count,), value, device=DEVICE), 0, group)
        elif rank == 2:
            dist.isend(torch.ones(1, device=DEVICE), 0, group, tag=1)
        dist.barrier()
        if rank == 0:
            whole, other = torch.zeros(2, count, device=DEVICE)
            small = torch.ones(2, device=DEVICE)
            # The last one fails after the first has begun. Those between never start,
            # and take time to be checked and abandoned.
            tags = [*range(2, 3000), 1]
            others = [dist.P2POp(dist.irecv, small, 2, group, tag) for tag in tags]
            batch = [dist.P2POp(dist.irecv, whole, 1, group), *others]
            failing = dist.batch_isend_irecv(batch)[0]
            while not whole[0].item():
                pass
            with contextlib.suppress(dist.DistBackendError):
                group.recv_anysource([other], 0).wait(datetime.timedelta(seconds=30))
                assert len(other.unique()) == 1
            with pytest.raises(dist.DistBackendError, match="rank 2 has sent 4 bytes"):
                failing.wait(datetime.timedelta(seconds=30))
        dist.barrier()


def a_message_of_another_size(rank: int) -> None:
    if rank == 0:
        work = dist.isend(torch.ones(4, device=DEVICE), 1, tag=3)
        work.wait()
        return
    work = dist.irecv(torch.ones(5, device=DEVICE), 0, tag=3)
    wanted = "rank 0 has sent 16 bytes with tag 3, but this rank receives 20"
    with pytest.raises(dist.DistBackendError, match=wanted):
        work.wait(datetime.timedelta(seconds=30))


def test_groups_of_one_host_share_memory():
    run_ranks(groups_share_memory, 2, backend=None)


def test_one_rank_that_may_not_share_memory_decides():
    run_ranks(one_rank_that_may_not_decides, 2, backend=None)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("ranks", [2, 4])
def test_collectives_and_messages_of_all_sizes(ranks):
    run_ranks(everything, ranks, seconds=150)


def test_nothing_is_left_of_a_group():
    before = shared_memory()
    run_ranks(nothing_is_left, 2, backend=None)
    assert shared_memory() <= before


def test_ranks_that_call_different_collectives_are_told():
    run_ranks(different_collectives, 2)


def test_ranks_that_do_not_wait_detect_different_collectives():
    run_ranks(different_collectives_without_a_wait, 2)


def test_the_rest_of_a_failed_message_is_discarded():
    run_ranks(the_rest_of_a_message_is_nobodys, 3)


def test_a_message_of_another_size_is_an_error():
    run_ranks(a_message_of_another_size, 2)


def keeps_only_while_it_sends(rank: int) -> list[float]:
    dist.init_process_group("occl")
    store = dist.distributed_c10d._get_default_store()
    large = torch.full((4 << 20,), float(rank), device=DEVICE)
    if rank == 0:
        received = torch.empty(1, device=DEVICE)
        batch = [
            dist.P2POp(dist.isend, large, 1),
            dist.P2POp(dist.irecv, received, 2),
        ]
        works = dist.batch_isend_irecv(batch)
        store.set("sends", "1")
        for work in works:
            work.wait()
        found = received.item()
        dist.recv(large, 1)
        return [found, large[-1].item()]
    if rank == 1:
        store.get("sends")
        time.sleep(0.1)  # so that rank 0 begins to receive; both outcomes are valid
        dist.recv(torch.empty_like(large), 0)
        torch.accelerator.synchronize()
        late = dist.isend(large, 0)
        with pytest.raises(dist.DistBackendError, match="it continues"):
            late.wait(timeout=datetime.timedelta(milliseconds=300))
        store.set("late", "1")
    else:
        store.get("late")
        dist.send(torch.full((1,), 2.0, device=DEVICE), 0)
    torch.accelerator.synchronize()
    return []


def test_a_rank_that_has_sent_takes_no_more_than_it_receives():
    found = run_ranks(keeps_only_while_it_sends, 3, backend=None)
    assert found[0] == [2.0, 1.0]
