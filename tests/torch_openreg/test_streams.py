# SPDX-License-Identifier: BSD-3-Clause
"""torch.openreg.Stream and Event: order of work, contexts, timing, wrong arguments."""

from __future__ import annotations

import pytest
import torch
from torch.openreg import Event, Stream


def work(x: torch.Tensor) -> torch.Tensor:
    """Keeps a stream busy for some milliseconds."""
    for _ in range(5):
        x = x @ x / x.shape[0]
    return x


def test_default_stream_is_current_at_first() -> None:
    for index in range(2):
        default = torch.openreg.default_stream(index)
        assert default == torch.openreg.current_stream(index)
        assert default.stream_id == 0
        assert default.device == torch.device("openreg", index)
        assert isinstance(default, Stream)


def test_new_stream_differs_from_the_default_and_others() -> None:
    streams = [Stream(), Stream(), torch.openreg.default_stream()]
    assert len({(s.stream_id, s.device) for s in streams}) == 3
    assert all(isinstance(s, torch.Stream) for s in streams)


def test_stream_of_an_id_is_the_same_stream() -> None:
    stream = Stream("openreg:1")
    same = Stream(
        stream_id=stream.stream_id,
        device_index=stream.device_index,
        device_type=stream.device_type,
    )
    assert same == stream
    assert hash(same) == hash(stream)
    assert same != Stream("openreg:1")


@pytest.mark.parametrize("priority", [-100, -1, 0, 1, 100])
def test_stream_accepts_any_priority(priority: int) -> None:
    with torch.openreg.stream(Stream(0, priority)):
        assert work(torch.ones(8, 8, device="openreg")).sum().item() == 64


def test_stream_context_sends_work_there_and_restores() -> None:
    stream = Stream()
    with torch.openreg.stream(stream):
        assert torch.openreg.current_stream() == stream
        assert torch.accelerator.current_stream() == stream
        y = work(torch.ones(64, 64, device="openreg"))
    assert torch.openreg.current_stream() == torch.openreg.default_stream()
    stream.synchronize()
    assert (y == 1).all()


def test_stream_context_on_another_device_restores_both() -> None:
    before, stream = Stream("openreg:1"), Stream("openreg:1")
    with torch.openreg.device(1):
        torch.openreg.set_stream(before)
    with torch.openreg.stream(stream):
        assert torch.openreg.current_device() == 1
        assert torch.openreg.current_stream() == stream
    assert torch.openreg.current_device() == 0
    assert torch.openreg.current_stream(1) == before
    with torch.openreg.device(1):
        torch.openreg.set_stream(torch.openreg.default_stream())


def test_stream_context_may_be_entered_again() -> None:
    stream = Stream()
    context = torch.openreg.stream(stream)
    with context:
        with context:
            assert torch.openreg.current_stream() == stream
        assert torch.openreg.current_stream() == stream
    assert torch.openreg.current_stream() == torch.openreg.default_stream()


def test_stream_itself_is_a_context() -> None:
    stream = Stream("openreg:1")
    with stream:
        assert torch.openreg.current_stream() == stream
    assert torch.openreg.current_device() == 0


def test_no_stream_changes_nothing() -> None:
    default = torch.openreg.current_stream()
    torch.openreg.set_stream(None)
    with torch.openreg.stream(None):
        assert torch.openreg.current_stream() == default


def test_set_stream_makes_its_device_current() -> None:
    torch.openreg.set_stream(torch.openreg.default_stream(1))
    assert torch.openreg.current_device() == 1
    torch.openreg.set_stream(torch.openreg.default_stream(0))
    assert torch.openreg.current_device() == 0


def test_wait_stream_orders_work_of_two_streams() -> None:
    first, second = Stream(), Stream()
    x = torch.ones(256, 256, device="openreg")
    first.wait_stream(torch.openreg.current_stream())
    with torch.openreg.stream(first):
        y = work(x) * 2
    second.wait_stream(first)
    with torch.openreg.stream(second):
        z = y + 1
    second.synchronize()
    assert (z == 3).all()


def test_event_orders_work_of_two_devices() -> None:
    stream = Stream("openreg:1")
    with torch.openreg.stream(stream):
        y = work(torch.ones(256, 256, device="openreg:1")) * 2
        event = stream.record_event()
    torch.openreg.current_stream(0).wait_event(event)
    assert isinstance(event, Event)
    assert (y.to("openreg:0") == 2).all()


def test_record_event_uses_the_event_given() -> None:
    event = Event()
    assert Stream().record_event(event) is event
    event.synchronize()
    assert event.query()


def test_event_that_was_not_recorded_is_done() -> None:
    event = Event()
    assert event.query()
    event.synchronize()
    event.wait()
    assert isinstance(event, Event)


def test_elapsed_time_is_measured_in_milliseconds() -> None:
    start, end = Event(enable_timing=True), Event(True)
    start.record()
    work(torch.ones(256, 256, device="openreg"))
    end.record()
    end.synchronize()
    assert 0 < start.elapsed_time(end) < 60_000


def test_elapsed_time_without_timing_is_refused() -> None:
    start, end = Event(), Event()
    start.record()
    end.record()
    end.synchronize()
    with pytest.raises((RuntimeError, ValueError), match="enable_timing"):
        start.elapsed_time(end)


def test_event_recorded_again_means_the_last_record() -> None:
    event = Event()
    event.record()
    x = work(torch.ones(256, 256, device="openreg"))
    event.record()
    event.synchronize()
    assert torch.openreg.current_stream().query()
    assert (x == 1).all()


def test_event_between_processes_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="interprocess=True"):
        Event(interprocess=True)


def test_stream_and_event_are_shown_with_their_device() -> None:
    stream = Stream("openreg:1")
    assert repr(stream).startswith("<torch.openreg.Stream device=openreg:1 id=0x")
    assert "device_type=openreg, device_index=1" in repr(stream.record_event())


def test_streams_mix_with_those_of_torch() -> None:
    ours, theirs = Stream(), torch.Stream("openreg")
    theirs.wait_stream(ours)
    ours.wait_stream(theirs)
    first, last = torch.Event("openreg", enable_timing=True), Event(True)
    first.record(ours)
    theirs.wait_event(first)
    ours.wait_event(theirs.record_event())
    last.record(ours)
    last.synchronize()
    assert ours.query()
    assert first.elapsed_time(last) >= 0


def test_event_class_knows_the_events_of_the_device() -> None:
    assert isinstance(Event(), torch.Event)
    assert isinstance(torch.Event("openreg"), Event)
    assert isinstance(Stream().record_event(), Event)
    assert not isinstance(torch.Event("cpu"), Event)
    assert not isinstance(Stream(), Event)
    assert issubclass(Event, torch.Event)
