# SPDX-License-Identifier: BSD-3-Clause
"""Streams and events: order, waits, and memory that two streams use.

Long work is a chain of matrix products, which any device supports. A synchronous device
passes, too: a missing wait is only detected if work runs later.
"""

import time

import torch

from openreg_conformance.case import Suite

_suite = Suite(__name__)
case, cases = _suite.case, _suite.cases


def busy(device, rounds=40):
    """Keeps the current stream busy for some milliseconds, and returns zeros."""
    x = torch.zeros(256, 256, device=device)
    for _ in range(rounds):
        x = x @ x
    return x


def late(device, value, size=2048):
    """Makes a tensor whose values are written after work that takes long."""
    return busy(device).view(-1)[:size] + value


def wait_for(event, seconds=20):
    end = time.monotonic() + seconds
    while not event.query():
        assert time.monotonic() < end, f"query() is False after {seconds} s"
        time.sleep(0.001)


@case("streams", "accelerator")
def streams_are_made_and_current(device):
    """torch.Stream creates streams, and its context makes one current and restores."""
    before = torch.accelerator.current_stream()
    assert before.device.type == device
    stream = torch.Stream(device)
    assert stream.device.type == device and stream != before
    with stream:
        assert torch.accelerator.current_stream() == stream
    assert torch.accelerator.current_stream() == before


@case("streams", "accelerator", subject="set_stream", users=0.2)
def set_stream_changes_the_current_one(device):
    """torch.accelerator.set_stream changes the current stream."""
    before = torch.accelerator.current_stream()
    stream = torch.Stream(device)
    try:
        torch.accelerator.set_stream(stream)
        assert torch.accelerator.current_stream() == stream
        assert (torch.ones(4, device=device) + 1).tolist() == [2] * 4
    finally:
        torch.accelerator.set_stream(before)


@case("streams", "accelerator", subject="order in a stream")
def work_of_a_stream_is_in_order(device):
    """Work on one stream runs in the order of the calls."""
    for stream in (torch.accelerator.current_stream(), torch.Stream(device)):
        with stream:
            x = late(device, 1)
            x.mul_(3)
            x.add_(1)
            y = x.clone()
            x.zero_()
        stream.synchronize()
        assert set(y.tolist()) == {4.0}
        assert set(x.tolist()) == {0.0}


# Later cases wait with it.
@case("streams", "accelerator", subject="synchronize", users=0.6)
def synchronize_waits_for_the_stream(device):
    """After synchronize() of a stream, query() is True and results are complete."""
    stream = torch.Stream(device)
    with stream:
        x = late(device, 5)
        host = torch.empty(x.shape, pin_memory=True)
        host.copy_(x, non_blocking=True)
    stream.synchronize()
    assert stream.query(), "query() is False after synchronize()"
    assert set(host.tolist()) == {5.0}, "synchronize() returned before the copy"


@case("streams", "accelerator", subject="synchronize of the device")
def device_waits_for_all_streams(device):
    """torch.accelerator.synchronize() waits for every stream of the device."""
    hosts = []
    for value in (1, 2, 3):
        with torch.Stream(device):
            host = torch.zeros(2048, pin_memory=True)
            host.copy_(late(device, value), non_blocking=True)
            hosts.append(host)
    torch.accelerator.synchronize()
    assert [set(each.tolist()) for each in hosts] == [{1.0}, {2.0}, {3.0}]


@case("streams", "accelerator", subject="results that the host reads")
def reading_a_value_waits(device):
    """item(), tolist() and cpu() wait for the work before them."""
    assert late(device, 2)[0].item() == 2
    assert set(late(device, 3).cpu().tolist()) == {3.0}
    assert bool((late(device, 4) == 4).all())


@case("streams", "accelerator", subject="wait_stream")
def wait_stream_orders_two_streams(device):
    """Work after wait_stream sees the other stream's earlier results."""
    for _ in range(5):
        one, two = torch.Stream(device), torch.Stream(device)
        x = torch.zeros(2048, device=device)
        torch.accelerator.synchronize()
        with one:
            x.copy_(late(device, 1))
        two.wait_stream(one)
        with two:
            y = x * 10
        two.synchronize()
        assert set(y.tolist()) == {10.0}, "the second stream did not wait"
        torch.accelerator.synchronize()


@case("events", "accelerator", subject="wait_event")
def wait_event_orders_two_streams(device):
    """Work after wait_event sees the results from before the event."""
    for _ in range(5):
        one, two = torch.Stream(device), torch.Stream(device)
        x = torch.zeros(2048, device=device)
        torch.accelerator.synchronize()
        event = torch.Event(device)
        with one:
            x.copy_(late(device, 1))
        event.record(one)
        two.wait_event(event)
        with two:
            y = x * 10
        two.synchronize()
        assert set(y.tolist()) == {10.0}, "the second stream did not wait"
        torch.accelerator.synchronize()


@case("events", "accelerator", subject="wait", users=0.3)
def event_wait_orders_two_streams(device):
    """Event.wait makes the given stream wait."""
    one, two = torch.Stream(device), torch.Stream(device)
    x = torch.zeros(2048, device=device)
    torch.accelerator.synchronize()
    with one:
        x.copy_(late(device, 1))
    event = one.record_event()
    event.wait(two)
    with two:
        y = x + 1
    two.synchronize()
    assert set(y.tolist()) == {2.0}
    torch.accelerator.synchronize()


@case("events", "accelerator", subject="query and synchronize")
def events_complete(device):
    """An event completes after the work before it: query() and synchronize()."""
    stream = torch.accelerator.current_stream()
    event = torch.Event(device)
    late(device, 1)
    event.record(stream)
    wait_for(event)
    late(device, 1)
    event.record(stream)
    event.synchronize()
    assert event.query(), "query() is False after synchronize()"


@case("events", "accelerator", subject="events that complete too early")
def event_is_not_complete_before_its_work(device):
    """When an event is complete, earlier results are in host memory."""
    for _ in range(5):
        host = torch.zeros(2048, pin_memory=True)
        stream = torch.Stream(device)
        event = torch.Event(device)
        with stream:
            host.copy_(late(device, 7), non_blocking=True)
            event.record(stream)
        event.synchronize()
        assert set(host.tolist()) == {7.0}, "the event was complete before the copy"


@case("events", "accelerator", subject="events that are recorded again", users=0.3)
def event_is_recorded_again(device):
    """An event that is recorded again represents the last record."""
    event = torch.Event(device)
    event.record()
    event.synchronize()
    host = torch.zeros(2048, pin_memory=True)
    host.copy_(late(device, 2), non_blocking=True)
    event.record()
    event.synchronize()
    assert set(host.tolist()) == {2.0}, "the event stands for its first record"


@case("events", "accelerator", subject="times", users=0.3)
def events_measure_time(device):
    """elapsed_time of two events is the time of the work between them."""
    start = torch.Event(device, enable_timing=True)
    end = torch.Event(device, enable_timing=True)
    began = time.perf_counter()
    start.record()
    busy(device, 20)
    end.record()
    end.synchronize()
    most = (time.perf_counter() - began) * 1000
    found = start.elapsed_time(end)
    assert 0 < found <= most + 1, f"{found} ms of {most} ms"


@case("events", "accelerator", subject="events that were not recorded", users=0.1)
def event_that_was_not_recorded_is_complete(device):
    """An unrecorded event is complete, and waits for it return."""
    event = torch.Event(device)
    assert event.query()
    event.synchronize()
    torch.accelerator.current_stream().wait_event(event)
    assert torch.ones(1, device=device).item() == 1


@case("record_stream", "accelerator")
def record_stream_keeps_memory(device):
    """Memory that a recorded stream still reads is not reused."""
    side = torch.Stream(device)
    for _ in range(5):
        x = torch.ones(1 << 16, device=device)
        side.wait_stream(torch.accelerator.current_stream())
        with side:
            zeros = busy(device)
            y = x + zeros[0, 0]
        x.record_stream(side)
        del x
        for _ in range(3):  # takes the memory of x if that is free
            torch.full((1 << 16,), 9.0, device=device)
        side.synchronize()
        found = sorted(set(y.tolist()))
        assert found == [1.0], f"the side stream read {found}, expected ones"


@case("streams", "accelerator", subject="stream memory", users=0.4)
def memory_of_a_stream_is_used_again_in_order(device):
    """Memory freed on a stream is reused there in order."""
    with torch.Stream(device) as stream:
        kept = []
        for i in range(20):
            x = late(device, i, 4096) if i % 5 == 0 else busy(device, 1).view(-1) + i
            kept.append(x[:16].clone())
            del x
    stream.synchronize()
    assert [set(each.tolist()) for each in kept] == [{float(i)} for i in range(20)]


@case("streams", "two devices", subject="streams of the other device", users=0.2)
def stream_of_the_other_device(device):
    """A stream of another device becomes current there, and the device is restored."""
    before = torch.accelerator.current_device_index()
    stream = torch.Stream(f"{device}:1")
    assert stream.device.index == 1
    with stream:
        assert torch.accelerator.current_device_index() == 1
        x = torch.ones(4, device=f"{device}:1") + 1
    assert torch.accelerator.current_device_index() == before
    stream.synchronize()
    assert x.tolist() == [2] * 4


@case("streams", "accelerator", subject="backward on a stream", users=0.3)
def backward_runs_on_the_stream_of_forward(device):
    """Gradients of work on a stream are right after a wait for it."""
    with torch.Stream(device) as stream:
        x = late(device, 3)[:64].detach().requires_grad_()
        y = x * x
        y.sum().backward()
    stream.synchronize()
    torch.accelerator.synchronize()
    assert set(x.grad.tolist()) == {6.0}


@case("streams", "accelerator", subject="priorities", users=0.1)
def streams_may_have_priorities(device):
    """A stream of high priority can be created and works."""
    with torch.Stream(device, priority=-1) as stream:
        x = torch.ones(4, device=device) + 1
    stream.synchronize()
    assert x.tolist() == [2] * 4
