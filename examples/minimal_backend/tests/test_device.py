# SPDX-License-Identifier: BSD-3-Clause
"""Devices, streams, events, memory: what the guard, hooks and allocators give."""

from __future__ import annotations

import multiprocessing
import threading

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset


def test_device_is_the_accelerator() -> None:
    assert torch.accelerator.current_accelerator() == torch.device("minimal")
    assert torch.accelerator.is_available()
    assert torch.accelerator.device_count() == torch.minimal.device_count() == 2


def test_current_device_is_of_the_thread() -> None:
    seen = []
    with torch.minimal.device(1):
        thread = threading.Thread(
            target=lambda: seen.append(torch.minimal.current_device())
        )
        thread.start()
        thread.join()
        assert torch.empty(1, device="minimal").device == torch.device("minimal:1")
    assert seen == [0]
    assert torch.minimal.current_device() == 0


@pytest.mark.parametrize("index", [2, 100])
def test_device_that_does_not_exist_is_an_error(index: int) -> None:
    with pytest.raises(RuntimeError, match=f"device {index} does not exist"):
        torch.empty(1, device=f"minimal:{index}")


def test_events_order_streams_and_measure_time() -> None:
    first, second = torch.Stream("minimal"), torch.Stream("minimal")
    start, end = (torch.Event("minimal", enable_timing=True) for _ in range(2))
    with first:
        x = torch.ones(1 << 18, device="minimal")
        start.record()
        for _ in range(20):
            x += 1
        end.record()
    end.wait(second)
    with second:
        y = x + 1
    second.synchronize()
    assert y.eq(22).all()
    assert end.query()
    assert start.elapsed_time(end) > 0


def test_streams_are_current_inside_of_with_only() -> None:
    before = torch.accelerator.current_stream()
    with torch.Stream("minimal") as stream:
        assert torch.accelerator.current_stream() == stream
    assert torch.accelerator.current_stream() == before
    assert before.stream_id == 0


def test_memory_is_counted_and_given_back() -> None:
    before = torch.minimal.memory_allocated()
    torch.minimal.reset_peak_memory_stats()
    x = torch.empty(1024, device="minimal")
    assert torch.minimal.memory_allocated() == before + x.nbytes
    del x
    assert torch.minimal.memory_allocated() == before
    assert torch.minimal.max_memory_allocated() == before + 4096


def test_too_large_a_tensor_is_out_of_memory() -> None:
    with pytest.raises(torch.OutOfMemoryError, match="cannot allocate"):
        torch.empty(1 << 50, device="minimal")
    assert torch.ones(2, device="minimal").sum() == 2


@pytest.mark.parametrize("size", [0, 8, 4096])
def test_storage_changes_its_size_and_keeps_what_fits(size: int) -> None:
    x = torch.arange(16, device="minimal", dtype=torch.uint8)
    storage = x.untyped_storage()
    storage.resize_(size)
    assert storage.nbytes() == size
    kept = min(size, 16)
    assert storage.cpu().tolist()[:kept] == list(range(kept))


def test_pinned_memory_is_known_and_copied_without_waiting() -> None:
    host = torch.arange(1000.0).pin_memory()
    assert host.is_pinned()
    assert not torch.arange(3).is_pinned()
    device = host.to("minimal", non_blocking=True)
    back = torch.empty_like(host, pin_memory=True)
    back.copy_(device, non_blocking=True)
    torch.minimal.synchronize()
    assert torch.equal(back, host)


def test_data_loader_pins_batches() -> None:
    data = TensorDataset(torch.arange(8.0))
    for (batch,) in DataLoader(data, batch_size=4, pin_memory=True):
        assert batch.is_pinned()


def _fails_in_a_fork(queue: multiprocessing.Queue[str]) -> None:
    try:
        torch.ones(1, device="minimal")
    except RuntimeError as error:
        queue.put(str(error))


def test_fork_after_the_first_use_is_an_error() -> None:
    torch.ones(1, device="minimal")
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_fails_in_a_fork, args=(queue,))
    child.start()
    assert "orErrorInitialization" in queue.get(timeout=30)
    child.join()
