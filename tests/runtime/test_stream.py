# SPDX-License-Identifier: BSD-3-Clause
"""Streams and events."""

from __future__ import annotations

import threading
import weakref

import pytest

import openreg_runtime as runtime


def test_stream_runs_in_order() -> None:
    stream = runtime.Stream()
    order: list[int] = []
    for i in range(100):
        stream.launch(order.append, i)
    stream.synchronize()
    assert order == list(range(100))
    assert stream.query()


def test_query_is_false_while_a_kernel_runs(latch) -> None:
    stream = runtime.Stream()
    held = latch(stream)
    assert not stream.query()
    held.release()
    stream.synchronize()
    assert stream.query()


def test_stream_has_device_and_clamped_priority() -> None:
    stream = runtime.Stream(device=1, priority=-100)
    assert stream.device == runtime.Device(1)
    assert stream.priority == -3
    assert repr(stream) == "Stream(device=1, priority=-3)"
    assert runtime.Stream(priority=5).priority == 0


def test_handle_converts_back_to_the_stream() -> None:
    stream = runtime.Stream(device=1, priority=-1)
    same = runtime.Stream.from_handle(stream.handle)
    assert same.handle == stream.handle
    assert (same.device, same.priority) == (runtime.Device(1), -1)
    ran: list[int] = []
    same.launch(ran.append, 1)
    del same  # which does not own the stream
    stream.launch(ran.append, 2)
    stream.synchronize()
    assert ran == [1, 2]


def test_handle_of_nothing_is_the_default_stream_of_the_current_device() -> None:
    default = runtime.Device(0).default_stream
    assert runtime.Stream.from_handle(0).handle == default.handle


def test_handle_of_no_stream_is_refused() -> None:
    stream = runtime.Stream()
    handle = stream.handle
    del stream
    for wrong in (handle, 3):
        with pytest.raises(runtime.OpenRegError, match="not a live handle"):
            runtime.Stream.from_handle(wrong)


def test_default_stream_outlives_its_object(latch) -> None:
    held = latch(runtime.Device(0).default_stream)
    assert not runtime.Device(0).default_stream.query()
    held.release()
    runtime.Device(0).default_stream.synchronize()


@pytest.mark.parametrize("held_one", ["default", "other"])
def test_default_stream_is_ordered_with_no_other(latch, held_one: str) -> None:
    streams = {"default": runtime.Device(0).default_stream, "other": runtime.Stream(0)}
    held = streams.pop(held_one)
    (free,) = streams.values()
    hold = latch(held)
    ran = []
    free.launch(ran.append, 1)
    free.synchronize()
    assert ran == [1]
    assert not held.query()
    hold.release()
    held.synchronize()


def test_work_runs_after_the_stream_object_is_gone(latch) -> None:
    stream = runtime.Stream()
    held = latch(stream)
    ran = threading.Event()
    stream.launch(ran.set)
    del stream
    held.release()
    assert ran.wait(30)


def test_event_is_reached_with_the_stream(latch) -> None:
    stream = runtime.Stream()
    event = runtime.Event()
    assert event.query()
    held = latch(stream)
    event.record(stream)
    assert not event.query()
    held.release()
    event.synchronize()
    assert event.query()


def test_event_recorded_again_counts_the_last_record(latch) -> None:
    held = runtime.Stream()
    event = runtime.Event()
    event.record(runtime.Stream())
    event.synchronize()
    hold = latch(held)
    event.record(held)
    assert not event.query()
    hold.release()
    event.synchronize()


def test_wait_event_orders_streams_of_two_devices(latch) -> None:
    producer, consumer = runtime.Stream(0), runtime.Stream(1)
    event = runtime.Event()
    order: list[str] = []
    held = latch(producer)
    producer.launch(order.append, "produced")
    event.record(producer)
    consumer.wait_event(event)
    consumer.launch(order.append, "consumed")
    assert not consumer.query()
    held.release()
    consumer.synchronize()
    assert order == ["produced", "consumed"]


def test_elapsed_time_is_in_milliseconds() -> None:
    stream = runtime.Stream()
    start, end = runtime.Event(), runtime.Event()
    start.record(stream)
    end.record(stream)
    stream.synchronize()
    assert 0 <= start.elapsed_time(end) < 60_000


def test_elapsed_time_before_the_end_raises(latch) -> None:
    stream = runtime.Stream()
    start, end = runtime.Event(), runtime.Event()
    start.record(stream)
    latch(stream)
    end.record(stream)
    with pytest.raises(runtime.OpenRegError, match="synchronize the later") as caught:
        start.elapsed_time(end)
    assert caught.value.name == "orErrorNotReady"


def test_elapsed_time_without_timing_raises() -> None:
    start, end = runtime.Event(timing=False), runtime.Event()
    start.record()
    end.record()
    with pytest.raises(runtime.OpenRegError, match="created with timing"):
        start.elapsed_time(end)


def test_streams_are_equal_if_they_are_the_same_stream() -> None:
    stream = runtime.Stream()
    again = runtime.Stream.from_handle(stream.handle)
    assert stream == again
    assert hash(stream) == hash(again)
    assert {stream: 1}[again] == 1
    assert stream != runtime.Stream()
    assert stream != stream.handle
    default = runtime.Device(0).default_stream
    assert default == runtime.Stream.from_handle(0)
    assert default != runtime.Device(1).default_stream


def test_events_are_equal_if_they_are_the_same_event() -> None:
    event, other = runtime.Event(), runtime.Event()
    assert event == event
    assert event != other
    assert len({event, other, event}) == 2
    assert event != runtime.Stream()


@pytest.mark.parametrize("kind", [runtime.Stream, runtime.Event])
def test_streams_and_events_have_weak_references(kind) -> None:
    thing = kind()
    reference = weakref.ref(thing)
    assert reference() is thing
    del thing
    assert reference() is None
