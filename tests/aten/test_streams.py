# SPDX-License-Identifier: BSD-3-Clause
"""Streams, events, the current device, and threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor

from support.latches import Latches


@pytest.fixture(autouse=True)
def streams_restored(device: str) -> Iterator[None]:
    """Checks that a test leaves every default stream current."""
    yield
    for index in range(2):
        assert torch.accelerator.current_stream(index).stream_id == 0


def enqueue_fill(target: Tensor, value: float) -> Tensor:
    """Enqueues a copy of `value` into `target`; returns the pinned source."""
    source = torch.full(target.shape, value).pin_memory()
    target.copy_(source, non_blocking=True)
    return source


def test_new_streams_differ_and_know_their_device(device: str) -> None:
    one, other = torch.Stream(device), torch.Stream(f"{device}:1")
    assert one != torch.Stream(device)
    assert one.device == torch.device(device, 0)
    assert other.device == torch.device(device, 1)
    assert one.query()
    assert other.query()
    assert len({torch.Stream(device).stream_id for _ in range(20)}) == 20
    assert torch.Stream(device, priority=-1) is not None


def test_pool_hands_its_streams_out_in_turn(device: str) -> None:
    ids = {torch.Stream(device).stream_id for _ in range(100)}
    assert len(ids) <= 32


def test_default_stream_is_current_until_another_is_set(device: str) -> None:
    default = torch.accelerator.current_stream(0)
    side = torch.Stream(device)
    with side:
        assert torch.accelerator.current_stream(0) == side
        inner = torch.Stream(device)
        with inner:
            assert torch.accelerator.current_stream(0) == inner
        assert torch.accelerator.current_stream(0) == side
    assert torch.accelerator.current_stream(0) == default
    torch.accelerator.set_stream(side)
    assert torch.accelerator.current_stream(0) == side
    torch.accelerator.set_stream(default)


def test_stream_of_another_device_makes_that_device_current(device: str) -> None:
    side = torch.Stream(f"{device}:1")
    with side:
        assert torch.accelerator.current_device_index() == 1
        assert torch.empty(1, device=device).device.index == 1
        assert torch.accelerator.current_stream(1) == side
    assert torch.accelerator.current_device_index() == 0


def test_query_is_false_until_the_work_is_done(device: str, latch: Latches) -> None:
    target = torch.zeros(100, device=device)
    default = torch.accelerator.current_stream(0)
    held = latch()
    source = enqueue_fill(target, 5)
    event = default.record_event()
    assert not default.query()
    assert not event.query()
    held.release()
    default.synchronize()
    assert default.query()
    assert event.query()
    assert target.eq(5).all()
    del source


def test_stream_waits_for_the_event_of_another(device: str, latch: Latches) -> None:
    target = torch.zeros(100, device=device)
    side = torch.Stream(device)
    held = latch()
    first = enqueue_fill(target, 1)
    event = torch.accelerator.current_stream(0).record_event()
    side.wait_event(event)
    with side:
        second = enqueue_fill(target, 2)
    assert not side.query()
    held.release()
    side.synchronize()
    assert event.query()
    assert target.eq(2).all()
    del first, second


def test_stream_without_a_wait_does_not_stop(device: str, latch: Latches) -> None:
    target = torch.zeros(100, device=device)
    side = torch.Stream(device)
    held = latch()
    with side:
        source = enqueue_fill(target, 2)
        side.synchronize()
        assert target.sum().item() == 200, "an operator ran on the held stream"
    assert not torch.accelerator.current_stream(0).query()
    held.release()
    del source


def test_stream_waits_for_a_stream(device: str, latch: Latches) -> None:
    side = torch.Stream(f"{device}:1")
    held = latch()
    side.wait_stream(torch.accelerator.current_stream(0))
    assert not side.query()
    held.release()
    side.synchronize()
    assert side.query()


def test_operators_come_after_the_work_of_their_stream(
    device: str, latch: Latches
) -> None:
    target = torch.zeros(100, device=device)
    held = latch()
    source = enqueue_fill(target, 3)
    timer = threading.Timer(0.05, held.release)
    timer.start()
    assert (target + 1).eq(4).all()
    timer.join()
    del source


def test_event_measures_milliseconds(device: str, latch: Latches) -> None:
    start = torch.Event(device, enable_timing=True)
    end = torch.Event(device, enable_timing=True)
    stream = torch.accelerator.current_stream(0)
    start.record(stream)
    held = latch()
    end.record(stream)
    with pytest.raises(RuntimeError, match="must be completed"):
        start.elapsed_time(end)
    threading.Timer(0.05, held.release).start()
    end.synchronize()
    assert 40 < start.elapsed_time(end) < 20_000
    assert start.elapsed_time(start) == 0


def test_event_without_timing_reports_it(device: str) -> None:
    recorded = torch.Event(device, enable_timing=True)
    recorded.record()
    fresh = torch.Event(device, enable_timing=True)
    with pytest.raises(ValueError, match="must be recorded"):
        recorded.elapsed_time(fresh)
    plain = torch.Event(device)
    plain.record()
    with pytest.raises((RuntimeError, ValueError), match="timing"):
        recorded.elapsed_time(plain)
    assert fresh.query()
    fresh.synchronize()
    fresh.wait()


def test_event_stays_with_its_device(device: str) -> None:
    event = torch.Event(device)
    event.record(torch.accelerator.current_stream(0))
    with pytest.raises(RuntimeError, match="cannot be recorded"):
        event.record(torch.accelerator.current_stream(1))


def test_every_thread_has_its_own_current_stream_and_device(device: str) -> None:
    side = torch.Stream(device)

    def look() -> tuple[int, int]:
        return (
            torch.accelerator.current_stream(0).stream_id,
            torch.accelerator.current_device_index(),
        )

    with ThreadPoolExecutor(1) as pool, torch.Stream(f"{device}:1"), side:
        assert pool.submit(look).result() == (0, 0)
        assert torch.accelerator.current_stream(0) == side


def test_device_guard_restores_the_device(device: str) -> None:
    with torch.accelerator.device_index(1):
        assert torch.accelerator.current_device_index() == 1
        assert torch.ones(1, device=device).device.index == 1
    assert torch.accelerator.current_device_index() == 0
    with pytest.raises(RuntimeError, match="size mismatch"):
        torch.ones(3, 3, device=f"{device}:1") @ torch.ones(2, device=f"{device}:1")
    assert torch.accelerator.current_device_index() == 0


def test_record_stream_takes_streams_of_the_device_only(device: str) -> None:
    x = torch.ones(3, device=device)
    x.record_stream(torch.Stream(device))
    assert x.sum().item() == 3


def test_threads_compute_on_both_devices_with_the_numbers_of_the_cpu(
    device: str,
) -> None:
    inputs = [torch.randn(40, 40) for _ in range(8)]

    def work(x: Tensor) -> Tensor:
        for _ in range(20):
            x = (x @ x).tanh() + x.sum(0) * 0.01
        return x

    expected = [work(each) for each in inputs]

    def run(job: int) -> Tensor:
        x = inputs[job].to(f"{device}:{job % 2}")
        with torch.Stream(x.device):
            return work(x).cpu()

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(run, range(8)))
    for result, wanted in zip(results, expected, strict=True):
        assert result.equal(wanted)


def test_threads_train_and_free_memory_at_once(
    device: str, settled_memory: Callable[[int], int]
) -> None:
    def train(seed: int) -> list[Tensor]:
        model = torch.nn.Linear(6, 6).to(device)
        with torch.no_grad():
            model.weight.fill_(0.1 * seed)
            model.bias.zero_()
        x = torch.ones(4, 6, device=device)
        for _ in range(10):
            (gradient,) = torch.autograd.grad(model(x).square().sum(), [model.weight])
            with torch.no_grad():
                model.weight.sub_(gradient, alpha=0.01)
        return [each.detach().cpu() for each in model.parameters()]

    assert settled_memory(0) == 0, "an earlier test holds memory"
    expected = [train(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        for result, wanted in zip(pool.map(train, range(4)), expected, strict=True):
            assert all(map(torch.equal, result, wanted))
    assert settled_memory(0) == 0
