# SPDX-License-Identifier: BSD-3-Clause
"""Activity records, from Python and in every mode."""

from __future__ import annotations

import threading
import time
from itertools import pairwise

import pytest

import openreg_runtime as runtime
from openreg_runtime import activity
from support.programs import Program


def test_records_have_times_of_the_monotonic_clock() -> None:
    stream = runtime.Stream(device=1)
    before = time.monotonic_ns()
    with activity.record(["kernel"]) as recording:
        stream.launch(time.sleep, 0.01)
        stream.synchronize()
    (kernel,) = recording.take()
    assert before <= kernel.enqueued <= kernel.started < kernel.ended
    assert kernel.ended <= time.monotonic_ns()
    assert kernel.ended - kernel.started >= 10_000_000
    assert (kernel.device, kernel.stream) == (1, stream.number)
    assert kernel.name == "sleep"
    assert kernel.thread == threading.get_native_id()


def test_records_of_a_stream_are_in_order() -> None:
    stream = runtime.Stream()
    with activity.record(["kernel"]) as recording:
        for _ in range(50):
            stream.launch(int)
        stream.synchronize()
    kernels = recording.take()
    assert len(kernels) == 50
    for one, other in pairwise(kernels):
        assert one.ended <= other.started
        assert one.correlation < other.correlation


def test_copies_say_where_they_go() -> None:
    buffer, pinned = runtime.Buffer(100), runtime.PinnedBuffer(100)
    with activity.record(["memcpy", "memset"]) as recording:
        buffer.copy_from(bytes(100))
        buffer.copy_to(pinned)
        buffer.fill(3)
    found = [
        (each.kind, each.bytes, each.direction, each.memory)
        for each in recording.take()
    ]
    assert found == [
        ("memcpy", 100, "HtoD", "pageable"),
        ("memcpy", 100, "DtoH", "pinned"),
        ("memset", 100, None, None),
    ]


def test_failed_kernel_names_its_code() -> None:
    stream = runtime.Stream()
    with activity.record(["kernel"]) as recording:
        stream.launch(lambda: 1 / 0)
        with pytest.raises(runtime.OpenRegError):
            stream.synchronize()
    (kernel,) = recording.take()
    assert kernel.error == "orErrorLaunchFailure"


def test_dropped_commands_of_a_lost_device_are_recorded(latch) -> None:
    stream = runtime.Stream()
    held = latch(stream)
    with activity.record(["kernel"]) as recording:
        stream.launch(int)
        with runtime.failures.lost_device(0):
            held.release()
    (kernel,) = recording.take()
    assert kernel.error == "orErrorDeviceLost"
    assert kernel.ended - kernel.started < 10_000_000  # it did not run


def test_tags_are_those_of_the_thread() -> None:
    stream = runtime.Stream()
    with activity.record(["kernel"]) as recording:
        with activity.tag(5), activity.tag(6, user=True):
            stream.launch(int)
        stream.launch(int)
        stream.synchronize()
    tags = [(each.external_id, each.user_id) for each in recording.take()]
    assert tags == [(5, 6), (0, 0)]


def test_kinds_and_capacity_are_checked() -> None:
    for kinds, text in ([], "kinds is empty"), (["kernels"], "kinds has 'kernels'"):
        with pytest.raises(ValueError, match=text), activity.record(kinds):
            pass
    with pytest.raises(ValueError, match="capacity"), activity.record(capacity=-1):
        pass
    with (
        activity.record(),
        pytest.raises(runtime.OpenRegError, match="already"),
        activity.record(),
    ):
        pass


def test_dropped_records_are_counted() -> None:
    stream = runtime.Stream()
    with activity.record(["call"], capacity=5) as recording:
        for _ in range(8):
            stream.query()
    assert len(recording.take()) == 5
    assert recording.dropped == 3


def test_forked_child_that_inherits_a_recording_is_told_as_always(
    run_python: Program,
) -> None:
    source = """
import os
import openreg_runtime as runtime
from openreg_runtime import activity
stream = runtime.Stream()
with activity.record() as recording:
    stream.launch(int)
    stream.synchronize()
    if (child := os.fork()) == 0:
        try:
            stream.synchronize()
        except runtime.OpenRegError as error:
            os._exit(0 if "spawn" in str(error) else 1)
        os._exit(2)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = run_python(source)
    assert done.stdout.split() == ["0"], done.stderr


def test_device_process_measures_its_kernels(run_python: Program) -> None:
    source = """
import time
import openreg_runtime as runtime
from openreg_runtime import activity
first, second = runtime.Buffer(1 << 20), runtime.Buffer(1 << 20)
first.fill(1)
stream = runtime.Stream()
with activity.record(["memcpy", "memset"]) as recording:
    for _ in range(20):
        second.copy_from(first, stream)
        second.fill(2, stream)
    stream.synchronize()
    data = bytearray(1 << 20)
    second.copy_to(data)
records = recording.take()
assert len(records) == 41, len(records)
end = 0
for each in records:
    assert each.enqueued <= each.started < each.ended, each
    assert end <= each.started, each
    end = each.ended
assert end <= time.monotonic_ns()
print(records[-1].direction)
"""
    done = run_python(source, OPENREG_ISOLATION="process")
    assert done.stdout.split() == ["DtoH"], done.stderr
