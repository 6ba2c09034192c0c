# SPDX-License-Identifier: BSD-3-Clause
"""Symmetric memory: ranks write into each other's memory, in the order of signals."""

from __future__ import annotations

import os
import re
import signal
import threading

import pytest
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric_memory

import openreg_runtime as runtime
from support.latches import Latch
from support.ranks import run_ranks
from torch_openreg.testing import RanksFailedError

pytestmark = pytest.mark.differs_in_process("occl", run=False)

LIMIT = 50_000  # milliseconds


def meet(*shape: int, group: dist.ProcessGroup | None = None, **options):
    tensor = symmetric_memory.empty(*shape, device="openreg", **options)
    return tensor, symmetric_memory.rendezvous(tensor, group or dist.group.WORLD)


def raises(text: str):
    return pytest.raises(RuntimeError, match=re.escape(text))


def buffers(rank: int, world: int) -> list[list[float]]:
    tensor, memory = meet(2, 3)
    assert (memory.rank, memory.world_size) == (rank, world)
    assert memory.buffer_size == 24
    assert symmetric_memory.is_symm_mem_tensor(tensor)
    assert not symmetric_memory.is_symm_mem_tensor(torch.ones(1, device="openreg"))
    # Views map to the begin of their storage, as on CUDA.
    again = symmetric_memory.rendezvous(tensor[1:], dist.group.WORLD)
    assert (again.offset, again.buffer_ptrs) == (0, memory.buffer_ptrs)
    tensor.fill_(rank)
    memory.barrier()
    following = (rank + 1) % world
    # The second row of the next rank, which no other rank writes or reads.
    memory.get_buffer(following, (3,), torch.float32, 3).add_(10)
    memory.barrier()
    assert (
        memory.get_remote_tensor(following, (2, 3), torch.float32)[1]
        .eq(following + 10)
        .all()
    )
    pads = memory.get_signal_pad(rank)
    assert pads.device == tensor.device
    torch.accelerator.synchronize()
    assert not pads.cpu().to(torch.int64).any()
    return tensor[:, 0].tolist()


@pytest.mark.parametrize("world", [2, 4])
def test_a_rank_writes_into_the_memory_of_another(world):
    found = run_ranks(buffers, world, world)
    assert found == [[rank, rank + 10] for rank in range(world)]


def waits(rank: int) -> None:
    tensor, memory = meet(4)
    tensor.zero_()
    torch.accelerator.synchronize()
    dist.barrier()
    other = torch.Stream("openreg")
    if rank == 1:
        memory.wait_signal(0, channel=2, timeout_ms=LIMIT)
        after = tensor.clone()
        with other:  # which does not wait
            assert torch.ones(2, device="openreg").sum().item() == 2
        assert not torch.accelerator.current_stream().query()
        dist.barrier()  # by the host, before the signal
        assert after.tolist() == [5.0] * 4
    else:
        dist.barrier()
        memory.get_buffer(1, (4,), torch.float32).fill_(5)
        memory.put_signal(1, channel=2, timeout_ms=LIMIT)
    torch.accelerator.synchronize()
    # A second signal waits until the first one is consumed.
    dist.barrier()
    if rank == 0:
        memory.put_signal(1, channel=3)
        torch.accelerator.synchronize()
        memory.put_signal(1, channel=3, timeout_ms=20)
        with raises("rank 1 has not taken the signal before"):
            torch.accelerator.synchronize()


def test_a_signal_is_waited_for_by_a_stream_and_not_by_the_host():
    run_ranks(waits, 2)


def channels(rank: int) -> None:
    """A barrier on a held stream does not block that of another channel."""
    _, memory = meet(4)
    held, free = torch.Stream("openreg"), torch.Stream("openreg")
    latch = Latch(runtime.Stream.from_handle(held.native_handle)) if rank == 0 else None
    with held:
        memory.barrier(channel=0, timeout_ms=LIMIT)
    with free:
        memory.barrier(channel=1, timeout_ms=LIMIT)
    free.synchronize()
    assert not held.query()
    dist.barrier()  # host barrier: until both have checked
    if latch is not None:
        assert latch.holds
        latch.release()
    held.synchronize()


def test_channels_are_apart():
    run_ranks(channels, 2)


def refusals(rank: int) -> None:
    _, memory = meet(4)
    last = memory.signal_pad_size // 4 // 2 - 1
    with raises(f"the channel of barrier is {last + 1}, but the signal pads"):
        memory.barrier(channel=last + 1)
    with raises("the channel of put_signal is -1"):
        memory.put_signal(1, channel=-1)
    with raises("the rank of wait_signal is 2, but the group has 2 ranks"):
        memory.wait_signal(2)
    with raises("requested size (20 bytes) exceeds the allocated size (16 bytes)"):
        memory.get_buffer(rank, (5,), torch.float32)
    with raises("was not allocated by torch.distributed._symmetric_memory.empty()"):
        symmetric_memory.rendezvous(torch.ones(1, device="openreg"), dist.group.WORLD)
    with raises("all ranks must allocate the same size, but rank"):
        meet(4 + rank)
    memory.barrier(channel=last, timeout_ms=LIMIT)
    torch.accelerator.synchronize()


def test_bad_calls_are_refused_and_the_memory_works_on():
    run_ranks(refusals, 2)


def late(rank: int) -> None:
    _, memory = meet(4)
    if rank == 1:
        memory.wait_signal(0, channel=7, timeout_ms=20)
        with raises(
            "wait_signal on channel 7 of group '0' on rank 1 of 2 timed out after "
            "20 ms: rank 0 has not signalled"
        ):
            torch.accelerator.synchronize()
    dist.barrier()


def test_a_wait_ends_at_its_limit():
    run_ranks(late, 2)


def dies(rank: int) -> None:
    _, memory = meet(4)
    dist.barrier()
    if rank == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    memory.barrier()  # without a limit
    with raises("the process of rank 0 has ended"):
        torch.accelerator.synchronize()
    raise ValueError("rank 1 got the error")


def test_a_barrier_ends_with_the_process_it_waits_for():
    with pytest.raises(RanksFailedError, match="rank 1 got the error"):
        run_ranks(dies, 2, grace=50)


def parts(rank: int) -> float:
    group = dist.new_group([1, 2], use_local_synchronization=True)
    if rank == 0:
        return 0.0
    tensor, memory = meet(1, group=group, dtype=torch.float64)
    tensor.fill_(rank)
    memory.barrier()
    peer = memory.get_buffer(1 - memory.rank, (1,), torch.float64).item()
    memory.barrier()
    # The others' memory stays until they have released it, too.
    del tensor
    torch.accelerator.synchronize()
    return peer


def test_a_group_of_some_ranks_has_its_own():
    assert run_ranks(parts, 3) == [0.0, 2.0, 1.0]


def lives(rank: int) -> list[float]:
    """A restarted group ignores the keys of its predecessor."""
    found = []
    store = dist.TCPStore(
        os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False
    )
    for life in range(3):
        # A separate prefix, because gloo leaves its addresses in the store.
        own = dist.PrefixStore(str(life), store)
        dist.init_process_group("occl", store=own, rank=rank, world_size=2)
        if life == 0:
            kept = symmetric_memory.empty(2, device="openreg")
        for tensor in (symmetric_memory.empty(2, device="openreg"), kept):
            memory = symmetric_memory.rendezvous(tensor, dist.group.WORLD)
            tensor.fill_(10 * life + rank)
            memory.barrier(timeout_ms=LIMIT)
            found.append(memory.get_buffer(1 - rank, (1,), torch.float32).item())
            memory.barrier(timeout_ms=LIMIT)
        dist.destroy_process_group()
        with raises("the group was aborted or destroyed"):
            memory.barrier()
    return found


def test_groups_one_after_another_meet_anew():
    found = run_ranks(lives, 2, backend=None)
    assert found[0] == [1.0, 1.0, 11.0, 11.0, 21.0, 21.0]
    assert found[1] == [0.0, 0.0, 10.0, 10.0, 20.0, 20.0]


def aborted(rank: int) -> None:
    _, memory = meet(4)
    stream = torch.Stream("openreg")
    with stream:
        memory.wait_signal(0, channel=1)  # without a limit
    dist.group.WORLD._get_backend(torch.device("openreg")).abort()
    with raises(
        "wait_signal on channel 1 of group '0' on rank 0 of 1: "
        "the group was aborted or destroyed"
    ):
        stream.synchronize()


def test_a_wait_without_a_limit_ends_with_its_group():
    run_ranks(aborted, 1)


def destroyed(rank: int) -> None:
    _, memory = meet(4)
    held, stream = torch.Stream("openreg"), torch.Stream("openreg")
    latch = Latch(runtime.Stream.from_handle(held.native_handle))
    with held:
        memory.put_signal(0, channel=1)
    with stream:
        memory.wait_signal(0, channel=1)
    threading.Timer(0.05, latch.release).start()
    dist.destroy_process_group()
    stream.synchronize()


def test_a_group_that_is_destroyed_first_waits_for_signals():
    run_ranks(destroyed, 1)


def test_the_store_ends_with_the_group(run_python):
    result = run_python(
        """
        import socket
        import torch
        import torch.distributed as dist
        import torch.distributed._symmetric_memory as symmetric_memory
        store = dist.TCPStore("127.0.0.1", 0, 1, True)
        port = store.port
        dist.init_process_group(store=store, rank=0, world_size=1)
        tensor = symmetric_memory.empty(8, device="openreg")
        memory = symmetric_memory.rendezvous(tensor, dist.group.WORLD)
        del store
        dist.destroy_process_group()
        with socket.socket() as client:
            print(client.connect_ex(("127.0.0.1", port)) != 0)
        """,
        TORCH_DEVICE_BACKEND_AUTOLOAD="1",
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == "True\n"


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "dropped"])
def test_a_program_ends_while_a_stream_waits_for_a_signal(run_python, kept):
    result = run_python(
        f"""
        import torch
        import torch.distributed as dist
        import torch.distributed._symmetric_memory as symmetric_memory
        dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        tensor = symmetric_memory.empty(8, device="openreg")
        memory = symmetric_memory.rendezvous(tensor, dist.group.WORLD)
        with torch.Stream("openreg"):
            memory.wait_signal(0, channel=1)
        if {kept}:
            torch.kept = tensor, memory
        print("ends")
        """,
        TORCH_DEVICE_BACKEND_AUTOLOAD="1",
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == "ends\n"


def test_a_host_function_runs_while_memory_is_freed(run_python):
    result = run_python(
        """
        import threading
        import torch
        import torch.distributed._symmetric_memory as symmetric_memory
        import openreg_runtime
        tensor = symmetric_memory.empty(8, device="openreg")
        stream = torch.accelerator.current_stream()
        begins = threading.Event()
        openreg_runtime.Stream.from_handle(stream.native_handle).launch_host(begins.wait)
        threading.Timer(0.01, begins.set).start()
        del tensor  # waits for the device, and so for the function
        print(stream.query())
        """,
        TORCH_DEVICE_BACKEND_AUTOLOAD="1",
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == "True\n"
