# SPDX-License-Identifier: BSD-3-Clause
"""Ranks that end, do not join, or give up: nothing hangs."""

from __future__ import annotations

import datetime
import os
import select
import signal
import sys
import threading
import time

import pytest
import torch
import torch.distributed as dist

import openreg_runtime as runtime
from openreg_distributed import flight
from support.limited_groups import begin
from support.programs import ROOT, run, variables
from support.ranks import run_each_rank, run_ranks

pytestmark = pytest.mark.differs_in_process("occl", run=False)

DEVICE = "openreg"
TRANSPORTS = pytest.mark.parametrize(
    "share_memory", [True, False], ids=["shared memory", "gloo"]
)


def killed(rank: int, share_memory: bool) -> float:
    begin(60, share_memory)
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    start = time.monotonic()
    work = dist.all_reduce(torch.ones(4, device=DEVICE), async_op=True)
    with pytest.raises(
        dist.DistBackendError, match=r"all_reduce number 2 of group '0' on rank 0 of 2"
    ):
        work.wait(datetime.timedelta(seconds=30))
    with pytest.raises(dist.DistBackendError, match="the group has failed"):
        dist.all_reduce(torch.ones(4, device=DEVICE))
    dist.destroy_process_group()
    return time.monotonic() - start


def late(rank: int, share_memory: bool) -> None:
    begin(2, share_memory)
    if rank == 1:
        time.sleep(8)
        os._exit(0)  # instead of the group, which has failed
    tensor = torch.ones(4, device=DEVICE)
    dist.all_reduce(tensor)
    start = time.monotonic()
    # The stream stops at the failed collective.
    with pytest.raises(RuntimeError, match="all_reduce number 2 of group '0'"):
        (tensor + 1).tolist()
    assert time.monotonic() - start < 6
    dist.destroy_process_group()


def aborted(rank: int, share_memory: bool) -> float:
    begin(60, share_memory)
    if rank == 1:
        time.sleep(4)
        os._exit(0)
    backend = dist.group.WORLD._get_backend(torch.device(DEVICE))
    tensor = torch.ones(4, device=DEVICE)
    start = time.monotonic()
    works = [
        dist.irecv(tensor, 1),
        dist.all_reduce(torch.ones(4, device=DEVICE), async_op=True),
    ]
    threading.Timer(0.5, backend.abort).start()
    for work in works:
        with pytest.raises(dist.DistBackendError, match="abort"):
            work.wait(datetime.timedelta(seconds=30))
    seconds = time.monotonic() - start
    dist.destroy_process_group()
    return seconds


def message_beside_a_stuck_collective(rank: int, share_memory: bool) -> None:
    begin(60, share_memory)
    dist.barrier()  # the group releases the memory that it has kept
    store = dist.distributed_c10d._get_default_store()
    if rank == 1:
        store.wait(["aborted"])
        return
    before = torch.openreg.memory_allocated()
    received = torch.ones(1 << 20, device=DEVICE)
    reduced = torch.ones(1 << 18, device=DEVICE)
    kept = 0 if share_memory else reduced.nbytes  # gloo never ends it
    works = [dist.irecv(received, 1), dist.all_reduce(reduced, async_op=True)]
    while flight.record()["entries"][-1]["state"] != "started":
        time.sleep(0.01)
    time.sleep(0.1)  # time for gloo to begin
    dist.group.WORLD._get_backend(torch.device(DEVICE)).abort()
    for work in works:
        with pytest.raises(dist.DistBackendError, match="abort"):
            work.wait(datetime.timedelta(seconds=30))
    del work, works, received, reduced
    dist.destroy_process_group()
    assert torch.openreg.memory_allocated() == before + kept
    store.set("aborted", "")


def late_after_an_abort(rank: int, share_memory: bool, receives: bool) -> None:
    begin(60, share_memory)
    store = dist.distributed_c10d._get_default_store()
    size = 1 << 18
    if rank == 1:
        store.wait(["aborted"])
        ones = torch.ones(size, device=DEVICE)
        if receives:
            dist.isend(ones, 0)  # without a receiver
        else:
            dist.broadcast(ones, 1)
            torch.accelerator.synchronize()
        time.sleep(0.5)
        store.set("sent", "")
        return
    tensor = torch.zeros(size, device=DEVICE)
    work = (
        dist.irecv(tensor, 1) if receives else dist.broadcast(tensor, 1, async_op=True)
    )
    work.wait()  # the stream waits, and the memory could be reused behind it
    while flight.record()["entries"][-1]["state"] != "started":
        time.sleep(0.01)
    time.sleep(0.1)  # time for gloo to begin
    dist.group.WORLD._get_backend(torch.device(DEVICE)).abort()
    with pytest.raises(torch.AcceleratorError, match="abort"):
        torch.accelerator.synchronize()
    del tensor, work
    others = [torch.zeros(size, device=DEVICE) for _ in range(4)]
    store.set("aborted", "")
    store.wait(["sent"])
    assert [other.any().item() for other in others] == [False] * 4


def timed_wait(rank: int) -> None:
    begin(60)
    if rank == 0:
        work = dist.all_reduce(torch.ones(4, device=DEVICE), async_op=True)
        with pytest.raises(dist.DistBackendError, match="not done after 200 ms"):
            work.wait(datetime.timedelta(milliseconds=200))
    else:
        time.sleep(2)
        dist.all_reduce(torch.ones(4, device=DEVICE))
    torch.accelerator.synchronize()
    dist.destroy_process_group()


def forgotten(rank: int) -> None:
    """Ends with a collective that no other rank joins, and without destroying."""
    begin(60)
    if rank == 0:
        dist.all_reduce(torch.ones(4, device=DEVICE), async_op=True)


def forgotten_beside_a_living_rank(rank: int) -> None:
    begin(60)
    processes = [0, 0]
    dist.all_gather_object(processes, os.getpid())
    if rank == 0:
        dist.all_reduce(torch.ones(4, device=DEVICE), async_op=True)
        return
    other = os.pidfd_open(processes[0])
    assert select.select([other], [], [], 25)[0], "rank 0 has not ended"
    os.close(other)


def exchange(*operations: tuple[object, torch.Tensor, int, int]) -> None:
    for work in dist.batch_isend_irecv([dist.P2POp(*each) for each in operations]):
        work.wait()


def mistakes_in_a_batch(rank: int, share_memory: bool) -> None:
    begin(60, share_memory)
    if rank == 0:
        four = torch.ones(4, device=DEVICE)
        one = torch.ones(1, device=DEVICE)
        send = (dist.isend, four, 0, None, 1)
        for wanted, operations in (
            ("a send to the same rank with tag 1 has no matching", [send]),
            (
                "a receive from the same rank with tag 2 has no matching",
                [send, (dist.irecv, four, 0, None, 2)],
            ),
            (
                "sends itself 4 elements of Float with tag 1, but receives 1 of Float",
                [send, (dist.irecv, one, 0, None, 1)],
            ),
            (
                "sends itself 4 elements of Float with tag 1, but receives 4 of Double",
                [send, (dist.irecv, four.double(), 0, None, 1)],
            ),
        ):
            with pytest.raises(RuntimeError, match=wanted):
                exchange(*operations)
        received = torch.zeros(2, 2, device=DEVICE)
        exchange(send, (dist.irecv, received, 0, None, 1))
        assert received.tolist() == [[1.0] * 2] * 2
    tensor = torch.ones(4, device=DEVICE)
    dist.all_reduce(tensor)
    assert tensor.tolist() == [2.0] * 4
    dist.destroy_process_group()


NOT_ENQUEUED = r"could not be enqueued: .*device( 1)? was lost"


def one_cannot_enqueue(rank: int) -> None:
    begin(20)
    tensor = torch.ones(4, device=DEVICE)
    torch.accelerator.synchronize()
    if rank == 1:
        with runtime.failures.lost_device(torch.accelerator.current_device_index()):
            with pytest.raises(RuntimeError, match=r"lost.*\(.* last is in /"):
                dist.all_reduce(tensor)
            with pytest.raises(dist.DistBackendError, match=NOT_ENQUEUED):
                dist.all_reduce(tensor)
        assert flight.record()["entries"][-1]["state"] == "failed"
        return
    work = dist.all_reduce(tensor, async_op=True)
    with pytest.raises(dist.DistBackendError, match=f"rank 1 .* {NOT_ENQUEUED}"):
        work.wait(datetime.timedelta(seconds=50))


FORKED = """
    import os
    import sys
    import threading

    import torch
    import torch.distributed as dist

    import openreg_runtime as runtime
    from openreg_distributed import Options, flight

    options = Options(share_memory={share_memory})
    store = dist.HashStore()
    dist.init_process_group(
        "occl", store=store, rank=0, world_size=1, pg_options=options
    )
    tensor = torch.ones(4, device="openreg")
    dist.all_reduce(tensor)
    current = torch.accelerator.current_stream()
    held = threading.Event()
    runtime.Stream.from_handle(current.native_handle).launch_host(held.wait)
    dist.all_reduce(tensor)
    for destroys in (True, False):
        child = os.fork()
        if child == 0:
            assert flight.record()["entries"] == []
            if destroys:
                dist.destroy_process_group()
            sys.exit()
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    held.set()
    torch.accelerator.synchronize()
    dist.all_reduce(tensor)
    print(tensor.tolist())
    """


@TRANSPORTS
def test_a_killed_rank_fails_the_collective(share_memory):
    first, second = run_each_rank(killed, 2, share_memory, grace=50, backend=None)
    assert not first.failure, first.failure
    assert first.value < 20
    assert second.exitcode == -signal.SIGKILL


@pytest.mark.timeout(200)
@pytest.mark.parametrize(
    "transport", ["shared", pytest.param("gloo", marks=pytest.mark.slow)]
)
def test_a_rank_is_killed_in_each_collective(transport):
    program = ROOT / "tools" / "lose_ranks.py"
    options = ("--kills", "1", "--limit", "10", "--transport", transport)
    done = run(sys.executable, program, *options, environment=variables(), seconds=180)
    assert done.returncode == 0, done.stderr
    assert "19 kills, 38 errors, after" in done.stdout.splitlines()[-1]


@TRANSPORTS
def test_a_rank_that_is_late_is_a_timeout(share_memory):
    first, _ = run_each_rank(late, 2, share_memory, backend=None)
    assert not first.failure, first.failure


@TRANSPORTS
def test_abort_ends_waits(share_memory):
    first, _ = run_each_rank(aborted, 2, share_memory, backend=None)
    assert not first.failure, first.failure
    assert first.value < 4


@TRANSPORTS
def test_memory_of_a_message_is_released_during_a_stuck_collective(share_memory):
    run_ranks(message_beside_a_stuck_collective, 2, share_memory, backend=None)


@TRANSPORTS
@pytest.mark.parametrize("receives", [False, True], ids=["broadcast", "recv"])
def test_a_rank_that_joins_after_an_abort_writes_to_no_other_tensor(
    share_memory, receives
):
    run_ranks(late_after_an_abort, 2, share_memory, receives, backend=None)


def test_a_limited_wait_ends_and_the_collective_continues():
    run_ranks(timed_wait, 2, backend=None)


def test_the_process_exits_during_a_stuck_collective():
    for ended in run_each_rank(forgotten, 2, seconds=30, backend=None):
        assert not ended.failure, ended.failure
        assert ended.exitcode == 0


def test_the_process_ends_while_the_other_rank_lives():
    run_ranks(forgotten_beside_a_living_rank, 2, backend=None)


@TRANSPORTS
def test_an_invalid_batch_fails_only_its_rank(share_memory):
    run_ranks(mistakes_in_a_batch, 2, share_memory, backend=None)


def test_a_collective_that_cannot_be_enqueued_fails_the_others():
    run_ranks(one_cannot_enqueue, 2, backend=None)


@TRANSPORTS
def test_a_forked_child_destroys_its_copy_of_a_group(run_python, share_memory):
    program = FORKED.format(share_memory=share_memory)
    ended = run_python(program, TORCH_DEVICE_BACKEND_AUTOLOAD="1")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines() == ["0", "0", "[1.0, 1.0, 1.0, 1.0]"]
    assert "was destroyed, but" not in ended.stderr
