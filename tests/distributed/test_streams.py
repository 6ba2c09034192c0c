# SPDX-License-Identifier: BSD-3-Clause
"""Collectives wait for streams, streams for collectives, and the host never waits."""

from __future__ import annotations

import ctypes
import random
import threading
import time
import weakref
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from openreg_distributed import Options
from support.latches import Latch
from support.ranks import run_ranks

pytestmark = pytest.mark.differs_in_process("occl", run=False)

DEVICE = "openreg"


def warm_up() -> None:
    # Warms up, because first calls of operators run on the host's thread and wait.
    warm = torch.ones(4, device=DEVICE)
    dist.all_reduce(warm)
    assert (warm * 2 + 1).tolist() == [5.0] * 4


def latch_on(stream: torch.Stream) -> Latch:
    import openreg_runtime as runtime

    return Latch(runtime.Stream.from_handle(stream.native_handle))


def collective_behind_a_held_stream(rank: int) -> None:
    warm_up()
    tensor = torch.full((4,), 1.0, device=DEVICE)
    latch = latch_on(torch.accelerator.current_stream())
    tensor *= 2
    start = time.monotonic()
    work = dist.all_reduce(tensor, async_op=True)
    work.wait()
    result = tensor * 2 + 1
    issued = time.monotonic() - start
    assert latch.holds
    assert not work.is_completed()
    latch.release()
    assert result.tolist() == [9.0] * 4
    assert work.is_completed()
    assert issued < 5


def receive_from_any_rank_behind_python(rank: int) -> None:
    import openreg_runtime as runtime

    warm_up()
    if rank == 1:
        dist.send(torch.ones(4, device=DEVICE), 0)
        torch.accelerator.synchronize()
        return
    tensor = torch.zeros(4, device=DEVICE)
    stream = torch.accelerator.current_stream()
    # Needs the GIL to end, when the host waits for the receive.
    runtime.Stream.from_handle(stream.native_handle).launch_host(time.sleep, 0.5)
    assert dist.recv(tensor) == 1
    assert tensor.tolist() == [1.0] * 4


def only_streams_that_wait_wait(rank: int) -> None:
    warm_up()
    tensor = torch.ones(4, device=DEVICE)
    torch.accelerator.synchronize()
    other = torch.Stream(DEVICE)
    work = None
    if rank == 1:  # rank 0 waits for this one
        time.sleep(1)
    work = dist.all_reduce(tensor, async_op=True)
    with other:
        assert (torch.ones(4, device=DEVICE) * 2 + 1).tolist() == [3.0] * 4
        if rank == 0:
            assert not work.is_completed()
        work.wait()
        assert (tensor * 2 + 1).tolist() == [5.0] * 4


def a_future_is_done_when_its_stream_is(rank: int) -> None:
    warm_up()
    tensor = torch.ones(4, device=DEVICE)
    latch = latch_on(torch.accelerator.current_stream())
    future = dist.all_reduce(tensor, async_op=True).get_future()
    doubled = future.then(lambda done: done.value()[0] * 2)
    result = doubled.wait()
    assert latch.holds
    latch.release()
    assert result.tolist() == [4.0] * 4


def memory_is_kept_while_it_runs(rank: int) -> None:
    warm_up()
    output = torch.zeros(2, 1024, device=DEVICE)
    given = torch.full((1024,), rank + 1.0, device=DEVICE)
    side = torch.Stream(DEVICE)
    side.wait_stream(torch.accelerator.current_stream())
    latch = latch_on(side)
    with side:
        work = dist.all_gather_into_tensor(output, given, async_op=True)
    del given
    # This would take the same memory and write to it immediately.
    nines = torch.full((1024,), 9.0, device=DEVICE)
    assert nines.sum().item() == 9 * 1024
    assert latch.holds
    latch.release()
    work.wait()
    assert output[:, 0].tolist() == [1.0, 2.0]


def memory_comes_back_with_a_wait(rank: int) -> None:
    warm_up()
    tensor = torch.full((1 << 20,), rank + 1.0, device=DEVICE)
    latch = latch_on(torch.accelerator.current_stream())
    work = dist.all_reduce(tensor, async_op=True)
    work.wait()
    first = tensor[:4].clone()
    before = torch.openreg.memory_allocated()
    del tensor, work
    assert torch.openreg.memory_allocated() == before - 4 * (1 << 20)
    # This takes the same memory, behind the collective.
    nines = torch.full((1 << 20,), 9.0, device=DEVICE)
    assert latch.holds
    latch.release()
    assert first.tolist() == [3.0] * 4
    assert nines.sum().item() == 9 * (1 << 20)


def memory_of_a_message_comes_back_with_a_wait(rank: int, share_memory: bool) -> None:
    group = dist.new_group(pg_options=Options(share_memory=share_memory))
    tensor = torch.full((1 << 20,), rank + 1.0, device=DEVICE)
    other = torch.zeros_like(tensor)
    dist.all_reduce(torch.ones(1, device=DEVICE), group=group)
    torch.accelerator.synchronize()
    latch = latch_on(torch.accelerator.current_stream())
    works = [dist.isend(tensor, 1 - rank, group), dist.irecv(other, 1 - rank, group)]
    for work in works:
        work.wait()
    first = other[:4].clone()
    before = torch.openreg.memory_allocated()
    del tensor, other, works, work
    assert torch.openreg.memory_allocated() == before - 8 * (1 << 20)
    nines = [torch.full((1 << 20,), 9.0, device=DEVICE) for _ in range(2)]
    assert latch.holds
    latch.release()
    assert first.tolist() == [2.0 - rank] * 4
    assert [each.sum().item() for each in nines] == [9 * (1 << 20)] * 2


def objects_of_storages_end_on_threads_of_python(rank: int) -> None:
    warm_up()
    tensor = torch.ones(1024, device=DEVICE)
    threads: list[int] = []
    weakref.finalize(
        tensor.untyped_storage(), lambda: threads.append(threading.get_ident())
    )
    latch = latch_on(torch.accelerator.current_stream())
    dist.all_reduce(tensor, async_op=True)  # no stream waits for it
    del tensor
    assert not threads
    latch.release()
    dist.barrier()  # after it
    dist.barrier()  # the group has detected that the first one has ended
    assert threads == [threading.get_ident()]


def numbers_of_dtensors_need_no_gil(rank: int) -> None:
    from torch.distributed.tensor import Shard, distribute_tensor, init_device_mesh

    mesh = init_device_mesh(DEVICE, (1,))
    plain = [torch.ones((1 << 16) + i, device=DEVICE).mul_(2.0) for i in range(8)]
    tensors = [distribute_tensor(each, mesh, [Shard(0)]) for each in plain]
    square = torch.ones(1024, 1024, device=DEVICE)
    square = square @ square
    stream = torch.accelerator.current_stream()
    stream.synchronize()
    square = square @ square  # later calls wait behind it
    for tensor in tensors:
        tensor.mul_(2.0)  # DTensor keeps the int object of the first call
    # Holds the GIL: kernels that wait for it would never end.
    assert library_of_python().orStreamSynchronize(stream.native_handle) == 0
    assert [tensor.to_local()[0].item() for tensor in tensors] == [4.0] * 8


def library_of_python() -> ctypes.PyDLL:
    import libopenreg

    (file,) = Path(libopenreg.__file__).parent.glob("lib/libopenreg.so.*.*")
    library = ctypes.PyDLL(str(file))
    library.orStreamSynchronize.argtypes = [ctypes.c_void_p]
    return library


def commands_of(device: int) -> int:
    """Returns the total number of commands of a device's default stream."""
    library = library_of_python()
    enqueued, completed = ctypes.c_uint64(), ctypes.c_uint64()
    stream = torch.accelerator.current_stream(device).native_handle
    library.orStreamGetProgress.argtypes = [ctypes.c_void_p] * 3
    error = library.orStreamGetProgress(
        stream, ctypes.addressof(enqueued), ctypes.addressof(completed)
    )
    assert error == 0
    return enqueued.value


def a_call_comes_after_work_of_its_own_device(rank: int) -> None:
    # Default streams of two devices have the same id and here equally many commands.
    tensors = [torch.ones(4, device=f"{DEVICE}:{device}") for device in range(2)]
    numbers = [torch.ones(1, device=f"{DEVICE}:{device}") for device in range(2)]
    for tensor, number in zip(tensors, numbers, strict=True):
        dist.all_reduce(tensor)
        number *= 1
        tensor.fill_(1)
        torch.accelerator.synchronize(tensor.device)
    first, second = (
        latch_on(torch.accelerator.current_stream(device)) for device in range(2)
    )
    while commands_of(0) < commands_of(1) + 5:
        numbers[0] *= 1
    dist.all_reduce(tensors[0], async_op=True).wait()
    while commands_of(1) < commands_of(0) - 1:
        numbers[1] *= 1
    tensors[1].fill_(5)
    assert commands_of(1) == commands_of(0)
    work = dist.all_reduce(tensors[1], async_op=True)
    first.release()
    torch.accelerator.synchronize(0)
    time.sleep(0.2)
    assert not work.is_completed()
    assert second.holds
    second.release()
    work.wait()
    assert tensors[1].tolist() == [10.0] * 4


def a_barrier_waits_on_the_host(rank: int) -> None:
    warm_up()
    latch = latch_on(torch.accelerator.current_stream())
    threading.Timer(0.5, latch.release).start()
    dist.barrier(device_ids=[torch.accelerator.current_device_index()])
    assert not latch.holds


def sends_both_ways_do_not_wait_for_each_other(rank: int) -> None:
    warm_up()
    given = torch.full((1 << 20,), float(rank), device=DEVICE)
    received = torch.empty_like(given)
    works = [dist.isend(given, 1 - rank), dist.irecv(received, 1 - rank)]
    for work in works:
        work.wait()
    assert received[-1].item() == 1 - rank


def small_calls_on_idle_streams_are_done_at_once(rank: int) -> None:
    warm_up()
    tensor = torch.ones(4, device=DEVICE)
    dist.barrier()
    torch.accelerator.synchronize()
    calls = [dist.broadcast(tensor, rank, async_op=True)] if rank == 0 else []
    calls += [dist.isend(tensor, 1 - rank)]
    # Both need neither the other rank nor another thread.
    assert all(call.is_completed() for call in calls)
    if rank == 1:
        dist.broadcast(tensor, 0)
    dist.recv(tensor, 1 - rank)
    assert calls[0].get_future().wait()[0].tolist() == [1.0] * 4


def a_rank_that_is_late_does_not_hold_the_host(rank: int) -> None:
    warm_up()
    store = dist.distributed_c10d._get_default_store()
    ones = torch.ones(4, device=DEVICE)
    parts = torch.zeros(8, device=DEVICE)
    sent = torch.full((4,), 7.0, device=DEVICE)
    received = torch.zeros(4, device=DEVICE)
    torch.accelerator.synchronize()
    if rank == 1:
        store.wait(["rank 0 continues"])
    work = [
        dist.all_reduce(ones, async_op=True),
        dist.all_gather_single(parts, ones, async_op=True),
        dist.isend(sent, 1 - rank),
        dist.irecv(received, 1 - rank),
    ]
    for each in work:
        each.wait()
    if rank == 0:
        assert not any(work[i].is_completed() for i in (0, 1, 3))
        store.set("rank 0 continues", "")
    assert ones.tolist() == [2.0] * 4
    assert parts.tolist() == [2.0] * 8
    assert received.tolist() == [7.0] * 4


def a_call_comes_after_what_follows_a_wait(rank: int) -> None:
    warm_up()
    tensor = torch.ones(4, device=DEVICE)
    stream = torch.accelerator.current_stream()
    for _ in range(20):
        dist.all_reduce(tensor)  # 2
        latch = latch_on(stream)
        tensor *= 3  # 6
        dist.all_reduce(tensor)  # 12
        dist.broadcast(tensor, 0)
        tensor /= 12
        assert latch.holds
        latch.release()
    assert tensor.tolist() == [1.0] * 4


def a_call_comes_after_work_of_another_thread(rank: int) -> None:
    warm_up()
    tensor = torch.ones(4, device=DEVICE)
    (tensor * 3).div_(2)
    stream = torch.accelerator.current_stream()
    for _ in range(200):
        work = dist.all_reduce(tensor, async_op=True)  # 2
        thread = threading.Thread(target=lambda: stream.wait_stream(stream))
        thread.start()
        work.wait()
        thread.join()
        other = threading.Thread(target=tensor.mul_, args=(3.0,))
        other.start()
        other.join()
        dist.all_reduce(tensor)  # 12
        tensor /= 12
    assert tensor.tolist() == [1.0] * 4


def random_calls(rank: int, seed: int) -> None:
    """Compares small and large calls, with and without work between, with gloo's."""
    together = random.Random(seed)  # the same on all ranks
    alone = random.Random(f"{seed} {rank}")
    ranks = dist.get_world_size()
    for _ in range(150):
        count = together.choice([1, 4, 300, 5000, 40000]) * ranks
        kind = together.randrange(7)
        root = together.randrange(ranks)
        peer = together.randrange(1, ranks)
        works = together.random() < 0.3
        given = torch.full((count,), float(alone.randrange(100)))
        results = []
        for device in ("cpu", DEVICE):
            tensor = given.to(device, copy=True)
            if alone.random() < 0.2:
                time.sleep(alone.random() / 1000)
            if works:
                tensor = tensor * 2 + 1
            output = torch.zeros(count, device=device)
            if kind == 0:
                dist.all_reduce(tensor)
            elif kind == 1:
                dist.broadcast(tensor, root)
            elif kind == 2:
                dist.all_to_all_single(output, tensor)
            elif kind == 3:
                dist.all_gather_single(output, tensor[: count // ranks])
            elif kind == 4:
                dist.reduce_scatter_single(output[: count // ranks], tensor)
            elif kind == 5:
                dist.reduce(tensor, root)
                tensor *= dist.get_rank() == root  # undefined on other ranks
            else:
                sent = dist.isend(tensor, (rank + peer) % ranks)
                dist.recv(output, (rank - peer) % ranks)
                sent.wait()
            results.append((tensor, output))
        for one, other in zip(*results, strict=True):
            assert torch.equal(one, other.cpu()), (kind, count, root)


def the_profiler_shows_titles(rank: int) -> None:
    warm_up()
    with torch.profiler.profile() as profile:
        dist.all_reduce(torch.ones(4, device=DEVICE))
    assert "occl:all_reduce" in {event.name for event in profile.events()}


def test_a_collective_runs_behind_a_held_stream():
    run_ranks(collective_behind_a_held_stream, 2, backend="occl")


def test_only_streams_that_wait_wait():
    run_ranks(only_streams_that_wait_wait, 2, backend="occl")


def test_a_future_is_done_when_its_stream_is():
    run_ranks(a_future_is_done_when_its_stream_is, 2, backend="occl")


def test_memory_is_kept_while_a_collective_runs():
    run_ranks(memory_is_kept_while_it_runs, 2, backend="occl")


def test_memory_comes_back_when_a_stream_waits():
    run_ranks(memory_comes_back_with_a_wait, 2, backend="occl")


@pytest.mark.parametrize("share_memory", [True, False], ids=["shared memory", "gloo"])
def test_memory_of_a_message_comes_back_when_a_stream_waits(share_memory):
    run_ranks(memory_of_a_message_comes_back_with_a_wait, 2, share_memory)


def test_objects_of_storages_end_on_threads_of_python():
    # On a stream's worker they would need the GIL, which it cannot get at exit.
    run_ranks(objects_of_storages_end_on_threads_of_python, 2, backend="occl")


def test_numbers_of_dtensors_need_no_gil():
    # A worker that needs the GIL at exit would abort the program.
    run_ranks(numbers_of_dtensors_need_no_gil, 1, backend="occl")


def test_a_barrier_waits_on_the_host():
    run_ranks(a_barrier_waits_on_the_host, 2, backend="occl")


def test_sends_both_ways_do_not_wait_for_each_other():
    run_ranks(sends_both_ways_do_not_wait_for_each_other, 2, backend="occl")


def test_small_calls_on_idle_streams_are_done_at_once():
    run_ranks(small_calls_on_idle_streams_are_done_at_once, 2, backend="occl")


def test_a_rank_that_is_late_does_not_hold_the_host():
    run_ranks(a_rank_that_is_late_does_not_hold_the_host, 2, backend="occl")


def test_a_call_runs_after_work_behind_a_wait():
    run_ranks(a_call_comes_after_what_follows_a_wait, 2, backend="occl")


def test_a_call_runs_after_work_of_its_device():
    run_ranks(a_call_comes_after_work_of_its_own_device, 2, backend="occl")


def test_a_call_runs_after_work_of_another_thread():
    run_ranks(a_call_comes_after_work_of_another_thread, 2, backend="occl")


@pytest.mark.parametrize("ranks", [2, 3])
def test_random_calls_have_the_results_of_gloo(ranks):
    run_ranks(random_calls, ranks, ranks, backend="cpu:gloo,openreg:occl")


def test_the_profiler_shows_titles():
    run_ranks(the_profiler_shows_titles, 2, backend="occl")


def test_a_receive_from_any_rank_waits_without_the_gil():
    run_ranks(receive_from_any_rank_behind_python, 2, backend="occl")
