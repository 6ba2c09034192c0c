# SPDX-License-Identifier: BSD-3-Clause
"""The GPU trace: streams, events, waits and memory call Python once it is active."""

from __future__ import annotations

from collections.abc import Callable

Output = Callable[..., str]

LISTEN = """
import torch
trace = torch.openreg._gpu_trace
seen = []
for name in vars(trace):
    if name.endswith("Callbacks"):
        event = name.removesuffix("Callbacks")
        call = lambda *ids, event=event: seen.append((event, *ids))
        getattr(trace, name).add_callback(call)
"""


def test_streams_events_and_waits_are_traced_in_order(output: Output) -> None:
    source = """
torch._C._activate_gpu_trace()
stream, event = torch.Stream("openreg"), torch.Event("openreg")
event.record(stream)
torch.accelerator.current_stream().wait_event(event)
event.synchronize()
stream.synchronize()
torch.accelerator.synchronize()
torch.openreg.synchronize(1)
del event
print(*(name for name, *ids in seen))
(made,), (event,), (recorded, to) = seen[0][1:], seen[1][1:], seen[2][1:]
print(made == to == seen[5][1], event == recorded == seen[3][1] == seen[4][1])
print(seen[-1][1] == event, made != event)
"""
    names, *same = output(LISTEN + source).splitlines()
    assert names.split() == [
        "StreamCreation",
        "EventCreation",
        "EventRecord",
        "EventWait",
        "EventSynchronization",
        "StreamSynchronization",
        "DeviceSynchronization",
        "DeviceSynchronization",
        "EventDeletion",
    ]
    assert same == ["True True", "True True"]


def test_nothing_is_traced_before_the_activation(output: Output) -> None:
    source = """
torch.openreg.synchronize()
torch.Stream("openreg").synchronize()
print(seen)
"""
    assert output(LISTEN + source) == "[]"


def test_wait_in_another_thread_is_traced_there(output: Output) -> None:
    source = """
import threading
torch._C._activate_gpu_trace()
threads = []
trace.DeviceSynchronizationCallbacks.add_callback(
    lambda: threads.append(threading.current_thread().name)
)
def wait():
    torch.ones(1000, device="openreg").sum()
    torch.openreg.synchronize()
for name in "ab":
    thread = threading.Thread(target=wait, name=name)
    thread.start()
    thread.join()
print(threads)
"""
    assert output(LISTEN + source) == "['a', 'b']"


def test_error_in_a_callback_does_not_reach_the_program(output: Output) -> None:
    source = """
import logging
logging.disable()
torch._C._activate_gpu_trace()
trace.DeviceSynchronizationCallbacks.add_callback(lambda: 1 / 0)
torch.openreg.synchronize()
print(torch.ones(2, device="openreg").tolist())
print(*(name for name, *ids in seen))
"""
    first, names = output(LISTEN + source).splitlines()
    assert first == "[1.0, 1.0]"
    assert names.split() == [
        "DeviceSynchronization",
        "MemoryAllocation",
        "MemoryDeallocation",
    ]


def test_memory_is_traced_by_its_address(output: Output) -> None:
    source = """
torch._C._activate_gpu_trace()
x = torch.empty(9, device="openreg")
y = x + 1
z = torch.empty(0, device="openreg")
addresses = [x.data_ptr(), y.data_ptr()]
del z, x, y
print(*(name for name, *ids in seen))
print([address for name, address in seen] == addresses * 2)
"""
    names, same = output(LISTEN + source).splitlines()
    assert names.split() == ["MemoryAllocation"] * 2 + ["MemoryDeallocation"] * 2
    assert same == "True"


def test_event_that_is_found_reached_is_a_wait_of_the_host(output: Output) -> None:
    source = """
from openreg_runtime import Device
import threading
torch._C._activate_gpu_trace()
stream = torch.accelerator.current_stream()
first = torch.Event("openreg", enable_timing=True)
last = torch.Event("openreg", enable_timing=True)
first.record(stream)
latch = threading.Event()
Device(0).default_stream.launch(latch.wait)
last.record(stream)
ids = [event[1] for event in seen if event[0] == "EventCreation"]
seen.clear()
print(last.query(), stream.query(), seen)
latch.set()
stream.synchronize()
seen.clear()
print(last.query(), seen == [("EventWait", ids[1], 0)])
seen.clear()
first.elapsed_time(last)
print(seen == [("EventWait", ids[0], 0), ("EventWait", ids[1], 0)])
seen.clear()
print(stream.query(), *(name for name, *_ in seen))
print(seen[1][1:] == (seen[0][1], stream.native_handle), seen[2][1:])
"""
    *lines, ids = output(LISTEN + source).splitlines()
    assert lines == [
        "False False []",
        "True True",
        "True",
        "True EventCreation EventRecord EventWait EventDeletion",
    ]
    assert ids.startswith("True (")
    assert ids.endswith(", 0)")


def test_error_on_its_way_survives_the_end_of_a_tensor(output: Output) -> None:
    source = """
torch._C._activate_gpu_trace()
def fail():
    x = torch.empty(9, device="openreg")
    raise ValueError("mine")
try:
    fail()
except ValueError as error:
    print(error)
# A call that fails in C releases its arguments while the error propagates.
try:
    [].__init__(torch.empty(9, device="openreg") for _ in [1 / 0])
except ZeroDivisionError as error:
    print(error)
try:
    list(map(lambda x: x.missing, [torch.empty(9, device="openreg")]))
except AttributeError as error:
    print("missing" in str(error))
print(sum(name == "MemoryDeallocation" for name, *_ in seen))
"""
    lines = output(LISTEN + source).splitlines()
    assert lines == ["mine", "division by zero", "True", "2"]
