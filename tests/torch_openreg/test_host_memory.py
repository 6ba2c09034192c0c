# SPDX-License-Identifier: BSD-3-Clause
"""Pinned memory: cached, counted, and reused only after its copies are done."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import openreg_runtime as runtime
from support.latches import Latch, Latches

Output = Callable[..., str]

KIB = 1 << 10


def stats() -> dict[str, Any]:
    return torch.openreg.host_memory_stats()


@pytest.fixture(autouse=True)
def empty_cache() -> Iterator[None]:
    """Starts every test without cached pinned memory."""
    gc.collect()
    torch.openreg.synchronize()
    torch.accelerator.empty_host_cache()
    yield
    torch.openreg.synchronize()


@pytest.fixture
def held_stream(latch: Latches) -> Latch:
    """Holds the default stream."""
    return latch()


def test_freed_block_is_used_again() -> None:
    x = torch.empty(1000, pin_memory=True)
    address = x.data_ptr()
    before = stats()["num_host_alloc"]
    del x
    y = torch.empty(700, pin_memory=True)  # the same power of two
    assert y.data_ptr() == address
    assert y.is_pinned()
    assert stats()["num_host_alloc"] == before


def test_statistics_count_rounded_blocks() -> None:
    torch.openreg.reset_accumulated_host_memory_stats()
    torch.openreg.reset_peak_host_memory_stats()
    before = stats()
    x = torch.empty(1000, pin_memory=True)  # 4000 bytes
    y = torch.empty(5 * KIB, dtype=torch.uint8, pin_memory=True)
    during = stats()
    del x
    after = stats()

    def change(name: str, later: dict[str, Any]) -> int:
        return int(later[name]) - int(before[name])

    assert change("active_requests.current", during) == 2
    assert change("active_bytes.current", during) == 4 * KIB + 8 * KIB
    assert change("allocations.current", during) == 2
    assert change("allocated_bytes.current", during) == 12 * KIB
    assert change("num_host_alloc", during) == 2
    assert change("host_alloc_time.count", during) == 2
    assert change("active_requests.current", after) == 1
    assert change("active_bytes.current", after) == 8 * KIB
    assert change("allocated_bytes.current", after) == 12 * KIB, "still cached"
    assert change("active_bytes.freed", after) == 4 * KIB
    torch.openreg.reset_accumulated_host_memory_stats()
    reset = stats()
    assert reset["active_requests.allocated"] == reset["active_bytes.freed"] == 0
    assert reset["active_bytes.peak"] >= before["active_bytes.current"] + 12 * KIB
    torch.openreg.reset_peak_host_memory_stats()
    assert stats()["active_bytes.peak"] == stats()["active_bytes.current"]
    torch.accelerator.empty_host_cache()
    emptied = stats()
    assert emptied["num_host_free"] >= 1
    assert emptied["allocated_bytes.current"] == after["allocated_bytes.current"] - (
        4 * KIB
    )
    assert y.is_pinned()


def test_nested_statistics_are_the_flat_ones() -> None:
    nested = torch.openreg.host_memory_stats_as_nested_dict()
    assert nested["active_bytes"]["current"] == stats()["active_bytes.current"]
    assert set(nested) == {
        "active_bytes",
        "active_requests",
        "allocated_bytes",
        "allocations",
        "host_alloc_time",
        "host_free_time",
        "num_host_alloc",
        "num_host_free",
    }


def test_statistics_are_empty_before_first_use(output: Output) -> None:
    source = """
    import torch
    torch.openreg.reset_accumulated_host_memory_stats()
    torch.openreg.reset_peak_host_memory_stats()
    print(torch.openreg.host_memory_stats(), torch.openreg.is_initialized())
    """
    assert output(source) == "{} False"


@pytest.mark.parametrize("direction", ["to the device", "to the host"])
def test_block_is_reused_only_after_its_copies(
    held_stream: Latch, direction: str
) -> None:
    moved = torch.full((1000,), 3.0, device="openreg:1").to("cpu").pin_memory()
    target = torch.zeros(1000, pin_memory=True)
    with torch.openreg.device(0):
        x = torch.empty(1000, pin_memory=True).fill_(3)
        address = x.data_ptr()
        device = torch.empty(1000, device="openreg")
        if direction == "to the device":
            device.copy_(x, non_blocking=True)
        else:
            device.copy_(moved, non_blocking=True)
            x.copy_(device, non_blocking=True)
        del x
        y = torch.empty(1000, pin_memory=True).fill_(4)
        assert y.data_ptr() != address
        target.copy_(device, non_blocking=True)
        held_stream.release()
        torch.openreg.synchronize()
        assert target.eq(3).all()
        assert y.eq(4).all()
        z = torch.empty(1000, pin_memory=True)
        assert z.data_ptr() == address


def test_slice_that_is_copied_keeps_its_block(held_stream: Latch) -> None:
    x = torch.zeros(1000, pin_memory=True)
    address = x.data_ptr()
    device = torch.empty(10, device="openreg")
    device.copy_(x[500:510], non_blocking=True)
    del x
    assert torch.empty(1000, pin_memory=True).data_ptr() != address
    held_stream.release()
    assert device.eq(0).all()


def test_array_over_a_slice_is_copied_in_order(held_stream: Latch) -> None:
    x = torch.arange(1000.0).pin_memory()
    view = torch.from_numpy(x.numpy()[500:510])
    assert view.is_pinned()
    device = torch.empty(10, device="openreg")
    device.copy_(view, non_blocking=True)
    assert not torch.openreg.default_stream().query()
    held_stream.release()
    assert device.tolist() == list(range(500, 510))


def test_interior_slices_and_registered_memory_are_pinned() -> None:
    x = torch.zeros(100, 100).pin_memory()
    assert x[50:, 3].is_pinned()
    assert x.view(-1)[-1:].is_pinned()
    assert x.untyped_storage().is_pinned()
    assert not x.clone().is_pinned()
    assert not torch.zeros(0).is_pinned()
    memory = bytearray(1 << 16)
    y = torch.frombuffer(memory, dtype=torch.float32)
    assert not y.is_pinned()
    with runtime.pinned(memory):
        assert y.is_pinned()
        assert y[100:200].is_pinned()
        moved = y.to("openreg", non_blocking=True)
        assert moved.eq(0).all()
    assert not y.is_pinned()


def test_memory_that_ran_out_is_taken_from_the_cache() -> None:
    x = torch.empty(1 << 20, pin_memory=True)
    frees = stats()["num_host_free"]
    del x
    with runtime.failures.inject_failure("malloc_host") as failure:
        assert torch.empty(10, pin_memory=True).is_pinned()
    assert failure.hits == 1
    assert stats()["num_host_free"] > frees
    with (
        runtime.failures.inject_failure("malloc_host", period=1),
        pytest.raises(torch.OutOfMemoryError),
    ):
        torch.empty(1 << 20, pin_memory=True)  # of a size that is not cached


@pytest.mark.parametrize("freed", [True, False])
def test_process_ends_while_pinned_memory_is_copied(
    output: Output, freed: bool
) -> None:
    source = f"""
    import torch
    kept = []
    for _ in range(50):
        x = torch.randn(100000).pin_memory()
        kept.append(x.to("openreg", non_blocking=True))
        kept.append(kept[-1].to("cpu", non_blocking=True))
        if {freed}:
            kept.clear()
    print("end")
    """
    assert output(source) == "end"


def test_threads_pin_and_copy_at_once() -> None:
    failures: list[str] = []

    def work(seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        with torch.openreg.stream(torch.openreg.Stream()):
            for _ in range(50):
                size = int(torch.randint(1, 5000, (), generator=generator))
                x = torch.randn(size, generator=generator)
                moved = x.pin_memory().to("openreg", non_blocking=True)
                back = moved.to("cpu", non_blocking=True)
                del moved
                torch.openreg.current_stream().synchronize()
                if not back.equal(x):
                    failures.append(f"{seed}: {size}")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
