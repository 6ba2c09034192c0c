# SPDX-License-Identifier: BSD-3-Clause
"""Memory and streams: blocks are reused in stream order, or when recorded work is done.

A latch holds the default stream; copies of pinned memory that are enqueued behind it
are the work that still uses a block.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor

import openreg_runtime as runtime
from support.latches import Latches
from support.programs import Program

pytestmark = pytest.mark.usefixtures("empty_pool")

MIB = 1 << 20


def read(name: str) -> int:
    return int(torch.accelerator.memory_stats(0)[name])


def take(size: int, device: str) -> Tensor:
    return torch.empty(size, dtype=torch.uint8, device=device)


def pinned(value: int, size: int) -> Tensor:
    return torch.full((size,), value, dtype=torch.uint8).pin_memory()


def test_freed_block_is_reused_at_once_on_its_stream(
    device: str, latch: Latches
) -> None:
    first, second = pinned(1, 3 * MIB), pinned(2, 3 * MIB)
    held = latch()
    x = take(3 * MIB, device)
    back = torch.empty(3 * MIB, dtype=torch.uint8, pin_memory=True)
    x.copy_(first, non_blocking=True)
    back.copy_(x, non_blocking=True)
    address = x.data_ptr()
    del x
    assert read("active_bytes.all.current") == 0
    y = take(3 * MIB, device)
    assert y.data_ptr() == address, "the stream waits for itself"
    y.copy_(second, non_blocking=True)
    held.release()
    torch.accelerator.synchronize(0)
    assert back.eq(1).all()
    assert y.cpu().eq(2).all()


def test_freed_block_stays_with_its_stream(device: str) -> None:
    x = take(3 * MIB, device)
    address = x.data_ptr()
    del x
    with torch.Stream(device):
        y = take(3 * MIB, device)
        assert y.data_ptr() != address
        assert read("segment.all.current") == 2
    assert take(3 * MIB, device).data_ptr() == address
    del y


def test_small_blocks_of_two_streams_have_segments_of_their_own(device: str) -> None:
    with torch.Stream(device):
        x = take(512, device)
    y = take(512, device)
    assert read("reserved_bytes.small_pool.current") == 4 * MIB
    assert abs(x.data_ptr() - y.data_ptr()) >= 2 * MIB


def test_recorded_stream_keeps_a_freed_block_until_its_work_is_done(
    device: str, latch: Latches
) -> None:
    source = pinned(7, 3 * MIB)
    back = torch.zeros(3 * MIB, dtype=torch.uint8).pin_memory()
    side = torch.Stream(device)
    held = latch()
    with side:
        x = take(3 * MIB, device)
    x.copy_(source, non_blocking=True)
    back.copy_(x, non_blocking=True)
    x.record_stream(torch.accelerator.current_stream(0))
    address = x.data_ptr()
    del x
    assert read("allocated_bytes.all.current") == 0
    assert read("active_bytes.all.current") == 3 * MIB
    with side:
        y = take(3 * MIB, device)
        assert y.data_ptr() != address
        y.fill_(9)
    held.release()
    torch.accelerator.synchronize(0)
    with side:
        z = take(3 * MIB, device)
        assert z.data_ptr() == address
    assert back.eq(7).all()


def test_block_waits_for_every_stream_that_was_recorded(
    device: str, latch: Latches
) -> None:
    streams = [torch.Stream(device) for _ in range(3)]
    held = latch()
    x = take(3 * MIB, device)
    default = torch.accelerator.current_stream(0)
    for stream in streams[1:]:
        stream.wait_stream(default)
    for stream in [*streams, *streams, default]:
        x.record_stream(stream)
    address = x.data_ptr()
    del x
    assert take(3 * MIB, device).data_ptr() != address
    assert read("active.all.current") == 1
    held.release()
    torch.accelerator.synchronize(0)
    assert take(3 * MIB, device).data_ptr() in (address, address + 3 * MIB)
    assert read("active.all.current") == 0


def test_recording_the_own_stream_changes_nothing(device: str, latch: Latches) -> None:
    held = latch()
    x = take(512, device)
    x.record_stream(torch.accelerator.current_stream(0))
    address = x.data_ptr()
    del x
    assert take(512, device).data_ptr() == address
    held.release()


def test_recording_a_view_keeps_the_block(device: str, latch: Latches) -> None:
    side = torch.Stream(device)
    with side:
        x = take(1024, device)
    held = latch()
    x[512:].record_stream(torch.accelerator.current_stream(0))
    del x
    assert read("active.all.current") == 1
    held.release()


def test_kernel_gets_no_block_that_later_work_of_its_stream_uses(device: str) -> None:
    """A kernel allocates when it runs: memory that the host has freed may be in use."""
    a = torch.ones(128, device=device)
    source = pinned(5, 512)
    back = torch.zeros(512, dtype=torch.uint8).pin_memory()
    started, freed = threading.Event(), threading.Event()
    addresses: list[int] = []

    def kernel() -> None:
        started.set()
        freed.wait()
        # The outputs of this operator are allocated while it runs.
        addresses.append(a.cumsum(0).data_ptr())
        addresses.append(a.cumsum(0).data_ptr())

    runtime.Device(0).default_stream.launch(kernel)
    started.wait()
    x = take(512, device)
    address = x.data_ptr()
    x.copy_(source, non_blocking=True)
    back.copy_(x, non_blocking=True)
    del x
    freed.set()
    torch.accelerator.synchronize(0)
    assert address not in addresses
    assert back.eq(5).all()
    assert a.cumsum(0).data_ptr() == address, "idle again, and the best fit"


def test_threads_hand_memory_from_stream_to_stream(device: str) -> None:
    def work(seed: int) -> list[int]:
        generator = torch.Generator().manual_seed(seed)
        here, there = torch.Stream(device), torch.Stream(device)
        kept: list[tuple[int, Tensor]] = []
        for step in range(60):
            size = int(torch.randint(1, 3 * MIB // 2, (), generator=generator))
            value = (seed + step) % 256
            source = pinned(value, size)
            back = torch.zeros(size, dtype=torch.uint8).pin_memory()
            with here:
                x = take(size, device)
                x.copy_(source, non_blocking=True)
            there.wait_stream(here)
            with there:
                back.copy_(x, non_blocking=True)
            x.record_stream(there)
            del x, source
            kept.append((value, back))
        here.synchronize()
        there.synchronize()
        return [value for value, back in kept if not back.eq(value).all()]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [[]] * 4


def test_empty_cache_waits_for_work_that_uses_cached_memory(
    device: str, latch: Latches
) -> None:
    source = pinned(1, 12 * MIB)
    held = latch()
    x = take(12 * MIB, device)
    x.copy_(source, non_blocking=True)
    del x
    timer = threading.Timer(0.05, held.release)
    timer.start()
    torch.accelerator.empty_cache()  # the latch needs the GIL
    timer.join()
    assert torch.accelerator.memory_reserved(0) == 0
    assert read("num_sync_all_streams") > 0


def test_allocation_without_room_waits_for_recorded_work(
    run_python: Program,
) -> None:
    source = """
    import threading
    import torch
    import openreg_aten
    import openreg_runtime as runtime

    openreg_aten._C.init()
    d, mib = "privateuseone", 1 << 20
    x = torch.empty(40 * mib, dtype=torch.uint8, device=d)
    started, release = threading.Event(), threading.Event()

    def hold():
        started.set()
        release.wait()

    side = torch.Stream(d)
    runtime.Device(0).default_stream.launch(hold)
    started.wait()
    side.wait_stream(torch.accelerator.current_stream(0))
    x.record_stream(side)
    del x
    threading.Timer(0.05, release.set).start()
    with side:
        y = torch.empty(40 * mib, dtype=torch.uint8, device=d)
    stats = torch.accelerator.memory_stats(0)
    print(stats["num_alloc_retries"], stats["num_ooms"], stats["num_sync_all_streams"])
    """
    done = run_python(source, OPENREG_DEVICE_MEMORY="64MiB")
    assert done.stdout.split() == ["1", "0", "1"], done.stderr


def test_record_stream_ignores_memory_of_others(device: str) -> None:
    x = torch.empty(0, device=device)
    x.record_stream(torch.Stream(device))
    assert x.data_ptr() == 0
