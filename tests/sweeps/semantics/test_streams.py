# SPDX-License-Identifier: BSD-3-Clause
"""Streams and events with CUDA's semantics and the CPU's values."""

from __future__ import annotations

import gc

import pytest
import torch
from torch import nn

from support.latches import Latch, Latches

from .agreement import program

# The CPU has no streams. The expected order is CUDA's: c10/cuda/CUDAStream.h and .cpp,
# aten/src/ATen/cuda/CUDAEvent.h, torch/csrc/autograd/engine.cpp and input_buffer.cpp.


@pytest.fixture
def hold(latch: Latches) -> Latch:
    """Keeps the default stream of the first device busy until it is released."""
    return latch()


def busy_sum(x: torch.Tensor) -> torch.Tensor:
    for _ in range(3):
        x = x * 2 + 1
    return x


class SideStream:
    """Returns a context with another stream on the device, and nothing on the CPU."""

    def __init__(self, device: str) -> None:
        self._side = None if device == "cpu" else torch.openreg.Stream()

    def __enter__(self) -> None:
        if self._side is not None:
            self._side.wait_stream(torch.openreg.current_stream())
            self._context = torch.openreg.stream(self._side)
            self._context.__enter__()

    def __exit__(self, *exception: object) -> None:
        if self._side is not None:
            self._context.__exit__(*exception)
            torch.openreg.current_stream().wait_stream(self._side)


@program
def test_work_of_a_side_stream_gives_the_same(device):
    x = torch.arange(6.0, device=device)
    with SideStream(device):
        y = busy_sum(x)
        x.mul_(3)
    return x, y, x + y


@program
def test_training_on_a_side_stream_gives_the_same(device):
    module = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).to(device)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, foreach=False)
    x = torch.ones(2, 3, device=device)
    losses, side = [], SideStream(device)
    for _ in range(3):
        with side:
            optimizer.zero_grad()
            loss = module(x).square().sum()
            loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, list(module.parameters())


@program
def test_graph_over_two_streams_gives_the_same_gradients(device):
    leaf = torch.ones(4, device=device, requires_grad=True)
    x = leaf * 2
    with SideStream(device):
        y = x.exp()
    z = (y * x).sum()
    with SideStream(device):
        z = z * 2
    z.backward()
    return leaf.grad


def test_leaf_that_is_first_used_on_another_stream_than_its_gradient_warns() -> None:
    # AccumulateGrad has the stream where it was made: InputBuffer::add,
    # torch/csrc/autograd/input_buffer.cpp.
    x = torch.ones(4, device="openreg", requires_grad=True)
    side = torch.openreg.Stream()
    with torch.openreg.stream(side):
        y = x.exp()
    torch.openreg.current_stream().wait_stream(side)
    with pytest.warns(UserWarning, match="AccumulateGrad node's stream does not match"):
        (y * x).sum().backward()


def test_backward_function_runs_on_the_stream_of_its_forward() -> None:
    # Engine::evaluate_function, torch/csrc/autograd/engine.cpp.
    seen = []

    class Note(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            seen.append(torch.openreg.current_stream())
            return grad * 2

    x = torch.ones(2, device="openreg", requires_grad=True)
    side = torch.openreg.Stream()
    with torch.openreg.stream(side):
        y = Note.apply(x)
    torch.openreg.current_stream().wait_stream(side)
    y.sum().backward()
    assert seen == [side]


def test_context_restores_the_stream_after_an_exception() -> None:
    before = torch.openreg.current_stream()
    with pytest.raises(LookupError), torch.openreg.stream(torch.openreg.Stream()):
        raise LookupError
    assert torch.openreg.current_stream() == before


def test_contexts_of_streams_nest() -> None:
    outer, inner = torch.openreg.Stream(), torch.openreg.Stream()
    with outer:
        with inner:
            assert torch.openreg.current_stream() == inner
        assert torch.openreg.current_stream() == outer
    assert torch.openreg.current_stream() == torch.openreg.default_stream()


def test_context_of_a_stream_makes_its_device_current() -> None:
    # torch.cuda.StreamContext in torch/cuda/__init__.py.
    with torch.openreg.stream(torch.openreg.Stream("openreg:1")):
        assert torch.openreg.current_device() == 1
        assert torch.ones(1, device="openreg").device.index == 1
    assert torch.openreg.current_device() == 0


def test_event_that_was_never_recorded_is_done() -> None:
    # CUDAEvent::query and synchronize, aten/src/ATen/cuda/CUDAEvent.h.
    event = torch.openreg.Event()
    event.synchronize()
    assert event.query()


def test_event_is_done_when_the_work_before_it_is(hold: Latch) -> None:
    event = torch.openreg.Event()
    event.record()
    assert not event.query()
    hold.release()
    event.synchronize()
    assert event.query()


def test_stream_that_waits_for_an_event_waits(hold: Latch) -> None:
    event, side = torch.openreg.Event(), torch.openreg.Stream()
    event.record()
    side.wait_event(event)
    done = side.record_event()
    assert not done.query()
    hold.release()
    side.synchronize()
    assert done.query()


def test_stream_that_does_not_wait_goes_on(hold: Latch) -> None:
    side = torch.openreg.Stream()
    done = side.record_event()
    done.synchronize()
    assert side.query()
    assert not torch.openreg.default_stream().query()


def test_record_again_moves_the_event(hold: Latch) -> None:
    event, side = torch.openreg.Event(), torch.openreg.Stream()
    event.record()
    event.record(side)
    event.synchronize()
    assert event.query()


def test_wait_stream_takes_what_is_there_when_it_is_called(hold: Latch) -> None:
    side = torch.openreg.Stream()
    side.wait_stream(torch.openreg.current_stream())
    later = torch.openreg.Stream()
    later.wait_stream(side)
    assert not later.query()
    hold.release()
    later.synchronize()
    assert later.query()


def test_memory_of_a_freed_tensor_is_reused_on_its_stream_alone() -> None:
    # DeviceCachingAllocator::get_free_block, c10/cuda/CUDACachingAllocator.cpp.
    gc.collect()
    torch.openreg.empty_cache()
    x = torch.empty(3_000_000, device="openreg")
    address = x.data_ptr()
    del x
    with torch.openreg.stream(torch.openreg.Stream()):
        other = torch.empty(3_000_000, device="openreg")
    again = torch.empty(3_000_000, device="openreg")
    assert other.data_ptr() != address
    assert again.data_ptr() == address


def test_recorded_memory_is_kept_until_the_stream_is_done(hold: Latch) -> None:
    # insert_events and process_events, c10/cuda/CUDACachingAllocator.cpp.
    side = torch.openreg.Stream()
    with torch.openreg.stream(side):
        x = torch.empty(3_000_000, device="openreg")
        address = x.data_ptr()
        x.record_stream(torch.openreg.default_stream())
        del x
        other = torch.empty(3_000_000, device="openreg")
        assert other.data_ptr() != address


def test_elapsed_time_needs_events_that_were_timed() -> None:
    # CUDAEvent::elapsed_time, aten/src/ATen/cuda/CUDAEvent.h.
    start, end = (torch.openreg.Event(enable_timing=True) for _ in range(2))
    start.record()
    busy_sum(torch.ones(10, device="openreg"))
    end.record()
    end.synchronize()
    assert start.elapsed_time(end) >= 0
    with pytest.raises((RuntimeError, ValueError)):
        torch.openreg.Event().elapsed_time(end)


def test_elapsed_time_of_events_of_two_devices_is_an_error() -> None:
    # cudaEventElapsedTime: invalid resource handle.
    events = []
    for index in range(2):
        with torch.openreg.device(index):
            events.append(torch.openreg.Event(enable_timing=True))
            events[-1].record()
        events[-1].synchronize()
    message = "recorded on device 0, and end on device 1: expected two events of one"
    with pytest.raises(RuntimeError, match=message):
        events[0].elapsed_time(events[1])
    assert events[1].elapsed_time(events[1]) == 0


def test_streams_compare_by_what_they_are() -> None:
    # torch.Stream.__eq__ and __hash__, torch/csrc/Stream.cpp.
    side = torch.openreg.Stream()
    again = torch.Stream(
        stream_id=side.stream_id,
        device_index=side.device_index,
        device_type=side.device_type,
    )
    assert side == again
    assert hash(side) == hash(again)
    assert side != torch.openreg.default_stream()


def test_priorities_of_streams_are_kept_in_their_range() -> None:
    # CUDAStream::priority_range, c10/cuda/CUDAStream.h.
    high = torch.openreg.Stream(priority=-1)
    low = torch.openreg.Stream(priority=0)
    assert high != low
    assert high.query()
