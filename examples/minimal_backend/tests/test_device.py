# SPDX-License-Identifier: BSD-3-Clause
"""Tests devices, streams, events and memory: the guard, the hooks, the allocators."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset


def test_device_is_the_accelerator() -> None:
    assert torch.accelerator.current_accelerator() == torch.device("minimal")
    assert torch.accelerator.is_available()
    assert torch.accelerator.device_count() == torch.minimal.device_count() == 2


def test_current_device_is_per_thread() -> None:
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


def test_event_is_on_the_device_of_its_stream() -> None:
    stream = torch.Stream("minimal:1")
    start, end = (torch.Event("minimal:1", enable_timing=True) for _ in range(2))
    start.record(stream)
    end.record(stream)
    end.synchronize()
    assert start.elapsed_time(end) >= 0


def test_device_module_has_streams_and_events() -> None:
    with torch.minimal.stream(torch.minimal.Stream()) as stream:
        assert torch.minimal.current_stream() == stream
        event = torch.minimal.Event()
        event.record()
    event.synchronize()
    assert event.query()


def test_stream_is_current_only_inside_with() -> None:
    before = torch.accelerator.current_stream()
    with torch.Stream("minimal") as stream:
        assert torch.accelerator.current_stream() == stream
    assert torch.accelerator.current_stream() == before
    assert before.stream_id == 0


def test_memory_is_counted_and_freed() -> None:
    before = torch.minimal.memory_allocated()
    torch.minimal.reset_peak_memory_stats()
    x = torch.empty(1024, device="minimal")
    assert torch.minimal.memory_allocated() == before + x.nbytes
    del x
    assert torch.minimal.memory_allocated() == before
    assert torch.minimal.max_memory_allocated() == before + 4096


def test_tensor_that_is_too_large_is_out_of_memory() -> None:
    with pytest.raises(torch.OutOfMemoryError, match="cannot allocate"):
        torch.empty(1 << 50, device="minimal")
    assert torch.ones(2, device="minimal").sum() == 2


@pytest.mark.parametrize("size", [0, 8, 4096])
def test_resized_storage_keeps_the_bytes_that_fit(size: int) -> None:
    x = torch.arange(16, device="minimal", dtype=torch.uint8)
    storage = x.untyped_storage()
    storage.resize_(size)
    assert storage.nbytes() == size
    kept = min(size, 16)
    assert storage.cpu().tolist()[:kept] == list(range(kept))


def test_pinned_memory_is_recognized_and_copied_without_waiting() -> None:
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


def _succeeds_in_a_fork(work: Callable[[], object]) -> bool:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.ones(4, device="minimal"),
        lambda: torch.ones(4).pin_memory(),
        lambda: torch.accelerator.current_stream().record_event(),
    ],
    ids=["tensor", "pinned", "event"],
)
def test_forked_child_destroys_inherited_objects_silently(
    make: Callable[[], object], capfd: pytest.CaptureFixture[str]
) -> None:
    torch.ones(1, device="minimal")
    owned = [make()]
    assert _succeeds_in_a_fork(owned.clear)
    assert capfd.readouterr().err == ""


def test_no_memory_is_pinned_in_a_forked_child() -> None:
    tensors = torch.ones(4).pin_memory(), torch.ones(4)

    def work() -> None:
        assert not any(each.is_pinned() for each in tensors)

    assert _succeeds_in_a_fork(work)
