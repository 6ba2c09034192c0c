# SPDX-License-Identifier: BSD-3-Clause
"""torch.openreg.Stream and Event: order of work, contexts, timing, wrong arguments."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.openreg import Event, ExternalStream, Stream

import openreg_runtime
from support.latches import Latches


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


@pytest.mark.parametrize(
    ("priority", "taken"), [(-100, -3), (-3, -3), (-1, -1), (0, 0), (1, 0), (100, 0)]
)
def test_stream_takes_the_nearest_priority(priority: int, taken: int) -> None:
    stream = Stream(0, priority)
    assert stream.priority == taken
    assert Stream.priority_range() == (0, -3)
    with torch.openreg.stream(stream):
        assert work(torch.ones(8, 8, device="openreg")).sum().item() == 64


def test_default_stream_has_the_least_priority() -> None:
    assert torch.openreg.default_stream(1).priority == 0


def test_each_priority_has_a_separate_pool() -> None:
    pools = [{Stream(1, priority) for _ in range(70)} for priority in (0, -1, -2, -3)]
    assert [len(pool) for pool in pools] == [32] * 4
    assert len(set().union(*pools)) == 4 * 32


def test_stream_of_a_negative_index_is_the_current_devices() -> None:
    with torch.openreg.device(1):
        assert Stream(-1).device_index == 1


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


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"stream_id": 12345}, RuntimeError, "not a live handle"),
        ({"device_index": 9}, RuntimeError, "9 is not a number from 0 to 1"),
        ({"device_type": 1}, ValueError, "expected a stream of an openreg device, but"),
    ],
)
def test_stream_that_does_not_exist_is_refused(
    arguments: dict[str, int], error: type[Exception], text: str
) -> None:
    stream = Stream()
    names = {
        name: getattr(stream, name)
        for name in ("stream_id", "device_index", "device_type")
    }
    with pytest.raises(error, match=text):
        Stream(**(names | arguments))


def test_stream_of_another_device_by_its_id_is_refused() -> None:
    stream = Stream("openreg:0")
    with pytest.raises(RuntimeError, match="belongs to device openreg:0"):
        Stream(
            stream_id=stream.stream_id, device_index=1, device_type=stream.device_type
        )


USES: dict[str, Callable[[Any], object]] = {
    "set_stream": torch.openreg.set_stream,
    "stream": torch.openreg.stream,
    "wait_stream": lambda x: Stream().wait_stream(x),
    "wait_event": lambda x: Stream().wait_event(x),
    "record_event": lambda x: Stream().record_event(x),
}


@pytest.mark.parametrize("name", USES)
def test_objects_that_are_not_streams_or_events_are_refused(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name}.* must be of type torch.*but got 3"):
        USES[name](3)


@pytest.mark.parametrize("name", ["set_stream", "stream"])
def test_stream_of_another_type_of_device_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}: expected .* openreg .* got one of"):
        USES[name](torch.Stream("cpu"))


@pytest.mark.parametrize("make", [Stream, Event, torch.openreg.current_stream])
@pytest.mark.parametrize("change", [pickle.dumps, copy.copy, copy.deepcopy])
def test_streams_and_events_can_not_be_pickled_or_copied(
    make: Callable[[], object], change: Callable[[object], object]
) -> None:
    with pytest.raises(TypeError, match=r"cannot pickle '(torch\.)?(Stream|Event)'"):
        change(make())


def test_wait_stream_and_wait_event_hold_later_work(
    latch: Latches,
) -> None:
    def compute() -> torch.Tensor:
        return torch.full((3,), 2.0, device="openreg") + 1

    compute()  # caches the metadata of its results
    held, after_event, after_stream, free = (Stream() for _ in range(4))
    hold = latch(held)
    after_event.wait_event(held.record_event())
    after_stream.wait_stream(held)
    results = []
    for stream in (after_event, after_stream, free):
        with torch.openreg.stream(stream):
            results.append(compute())
    free.synchronize()
    assert not after_event.query()
    assert not after_stream.query()
    hold.release()
    for stream, result in zip((after_event, after_stream, free), results, strict=True):
        stream.synchronize()
        assert result.tolist() == [3] * 3


def test_event_is_reached_when_the_work_before_it_is_done(
    latch: Latches,
) -> None:
    stream, event = Stream("openreg:1"), Event()
    hold = latch(stream)
    event.record(stream)
    assert not event.query()
    hold.release()
    event.synchronize()
    assert event.query()


def test_threads_have_current_streams_of_their_own_for_each_device() -> None:
    seen: list[list[Stream]] = []
    mine = [Stream(0), Stream(1)]

    def look() -> None:
        theirs = [Stream(0), Stream(1)]
        before = [torch.openreg.current_stream(index) for index in range(2)]
        for stream in theirs:
            torch.openreg.set_stream(stream)
        after = [torch.openreg.current_stream(index) for index in range(2)]
        seen.extend([before, theirs, after])

    with torch.openreg.stream(mine[1]), torch.openreg.stream(mine[0]):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        assert [torch.openreg.current_stream(index) for index in range(2)] == mine
    before, theirs, after = seen
    assert before == [torch.openreg.default_stream(index) for index in range(2)]
    assert after == theirs


def test_external_stream_runs_work_in_the_order_of_its_library(latch: Latches) -> None:
    theirs = openreg_runtime.Stream(1)
    stream = ExternalStream(theirs.handle, "openreg:1")
    assert isinstance(stream, Stream)
    assert stream.device == torch.device("openreg", 1)
    assert stream.native_handle == theirs.handle
    work(torch.full((8, 8), 1.0, device="openreg:1")) + 1  # is cached from here on
    held = latch(theirs)
    with torch.openreg.stream(stream):
        y = work(torch.full((8, 8), 1.0, device="openreg:1")) + 1
        assert torch.openreg.current_stream() == stream
        assert not stream.query()
        held.release()
        assert (y == 2).all()
    theirs.synchronize()


def test_external_stream_has_the_priority_that_it_was_made_with() -> None:
    theirs = openreg_runtime.Stream(0, priority=-2)
    assert ExternalStream(theirs.handle, 0).priority == -2


def test_stream_from_external_is_the_same_stream() -> None:
    theirs = openreg_runtime.Stream(0)
    stream = torch.openreg.get_stream_from_external(theirs.handle, 0)
    assert type(stream) is Stream
    assert stream == ExternalStream(theirs.handle)
    assert stream != torch.openreg.get_stream_from_external(
        openreg_runtime.Stream(0).handle, 0
    )


@pytest.mark.parametrize("index", [0, 1])
def test_external_default_stream_is_the_default_stream(index: int) -> None:
    default = torch.openreg.default_stream(index)
    handle = openreg_runtime.Device(index).default_stream.handle
    assert ExternalStream(handle, index) == default
    assert ExternalStream(0, index) == default


def test_pool_streams_have_handles_for_other_libraries() -> None:
    stream = Stream("openreg:1")
    theirs = openreg_runtime.Stream.from_handle(stream.native_handle)
    assert theirs.device == openreg_runtime.Device(1)
    assert ExternalStream(theirs.handle, 1) == stream


def test_external_stream_that_is_gone_is_refused_and_its_memory_is_not_lost() -> None:
    theirs = openreg_runtime.Stream(0)
    stream = ExternalStream(theirs.handle, 0)
    gc.collect()
    before = torch.openreg.memory_allocated()
    with torch.openreg.stream(stream):
        x = torch.ones(1000, device="openreg", requires_grad=True)
        y = (x * 2).sum()
    y.record_stream(stream)
    stream.synchronize()
    handle = theirs.handle
    del theirs
    with pytest.raises(RuntimeError, match="not a live handle"):
        ExternalStream(handle, 0)
    with pytest.raises(RuntimeError, match="not a live handle"):
        torch.openreg.set_stream(stream)
    with pytest.raises(RuntimeError, match="not a live handle"):
        y.backward()  # would run on the stream of the forward pass
    assert y.item() == 2000  # from the current stream
    del x, y
    gc.collect()
    assert torch.openreg.memory_allocated() == before
    torch.openreg.empty_cache()
    assert torch.ones(1000, device="openreg").sum().item() == 1000


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((12345,), RuntimeError, "not a live handle"),
        (("1",), TypeError, "stream_ptr must be of type builtins.int, but got '1'"),
        ((None,), TypeError, "stream_ptr must be of type builtins.int, but got None"),
        ((-1,), ValueError, "stream_ptr must be 0 or more, but got -1"),
        ((0, 7), RuntimeError, "Invalid device id 7"),
        ((0, "cpu"), ValueError, "Expected an openreg device"),
    ],
)
@pytest.mark.parametrize(
    "make", [ExternalStream, torch.openreg.get_stream_from_external]
)
def test_wrong_external_stream_is_refused(
    make: Callable[..., object],
    arguments: tuple[object, ...],
    error: type[Exception],
    text: str,
) -> None:
    with pytest.raises(error, match=text):
        make(*arguments)


def test_external_stream_of_another_device_is_refused() -> None:
    theirs = openreg_runtime.Stream(1)
    with pytest.raises(RuntimeError, match="belongs to device openreg:1, not to"):
        ExternalStream(theirs.handle, 0)


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


def test_hook_of_a_compiled_module_waits_for_streams(latch: Latches) -> None:
    side = Stream()
    x = torch.zeros(3, device="openreg")
    module = torch.nn.Identity()

    def wait(module: torch.nn.Module, arguments: object) -> None:
        event = side.record_event()
        current = torch.openreg.current_stream()
        current.wait_event(event)
        current.wait_stream(side)

    module.register_forward_pre_hook(wait)
    held = latch(side)
    with torch.openreg.stream(side):
        x.add_(1)
    torch.compile(module, backend="eager")(x)
    assert not torch.openreg.current_stream().query()
    held.release()
    assert x.tolist() == [1, 1, 1]


def test_the_name_of_the_device_is_a_constant_of_compiled_code() -> None:
    index = torch.openreg._utils._get_device_index
    add = torch.compile(
        lambda x: x + index("openreg:1"), backend="eager", fullgraph=True
    )
    assert add(torch.ones(2)).tolist() == [2, 2]


def test_sleep_holds_its_stream_and_not_the_host() -> None:
    start, end = (Event(enable_timing=True) for _ in range(2))
    side = Stream()
    with torch.openreg.stream(side):
        start.record()
        torch.openreg._sleep(300_000_000)
        end.record()
        assert not end.query()
    torch.openreg.default_stream().synchronize()
    assert not end.query()
    end.synchronize()
    assert start.elapsed_time(end) >= 300


def test_sleep_of_negative_length_is_refused() -> None:
    with pytest.raises(ValueError, match="cycles is -1, expected 0 or more"):
        torch.openreg._sleep(-1)


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


def test_event_takes_the_arguments_of_cuda() -> None:
    event = Event(enable_timing=True, blocking=True, interprocess=False, external=True)
    event.record()
    event.synchronize()
    assert event.elapsed_time(event) == 0


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


def test_isinstance_accepts_the_events_of_the_device() -> None:
    assert isinstance(Event(), torch.Event)
    assert isinstance(torch.Event("openreg"), Event)
    assert isinstance(Stream().record_event(), Event)
    assert not isinstance(torch.Event("cpu"), Event)
    assert not isinstance(Stream(), Event)
    assert issubclass(Event, torch.Event)


class Named(Event):
    """An event subclass with its own ``__init__``, as programs write for torch.cuda."""

    def __new__(cls, name: str, **options: bool) -> Named:
        return super().__new__(cls, **options)

    def __init__(self, name: str, **options: bool) -> None:
        super().__init__()
        self.name = name


class Counted(Stream):
    """A stream subclass with its own ``__init__``."""

    made = 0

    def __init__(self, *args: object, **kwargs: object) -> None:
        type(self).made += 1
        self.number = self.made


def test_subclass_of_event_keeps_its_class_and_runs_its_init() -> None:
    event = Named("start")
    assert type(event) is Named
    assert event.name == "start"
    assert isinstance(event, (Named, Event, torch.Event))
    assert event.device.type == "openreg"


def test_only_an_object_of_a_subclass_is_its_instance() -> None:
    for event in (Event(), torch.Event("openreg"), Stream().record_event()):
        assert isinstance(event, Event)
        assert not isinstance(event, Named)


def test_event_of_a_subclass_orders_work_and_measures_time() -> None:
    start = Named("start", enable_timing=True)
    end = Named("end", enable_timing=True)
    plain = Event(enable_timing=True)
    stream = Stream()
    start.record(stream)
    assert stream.record_event(end) is end
    plain.record(stream)
    torch.openreg.current_stream().wait_event(end)
    end.wait()
    plain.synchronize()
    assert end.query()
    assert 0 <= start.elapsed_time(end) < 60_000
    assert 0 <= start.elapsed_time(plain) < 60_000


def test_elapsed_time_of_a_subclass_names_the_error() -> None:
    start = Named("start", enable_timing=True)
    end = Named("end", enable_timing=True)
    with pytest.raises(ValueError, match="must be recorded"):
        start.elapsed_time(end)
    with pytest.raises(ValueError, match="enable_timing=True"):
        start.elapsed_time(Named("untimed"))
    with pytest.raises(TypeError, match=r"end_event must be of type torch\S*Event"):
        start.elapsed_time(1.0)  # type: ignore[arg-type]


def test_subclass_of_stream_keeps_its_class_and_runs_its_init() -> None:
    before = Counted.made
    first, second = Counted(), Counted("openreg:1", priority=-1)
    assert [type(first), type(second)] == [Counted, Counted]
    assert [first.number, second.number] == [before + 1, before + 2]
    assert (second.device, second.priority) == (torch.device("openreg:1"), -1)
    with first:
        assert torch.openreg.current_stream() == first
    first.wait_event(second.record_event())
