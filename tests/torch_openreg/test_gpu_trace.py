# SPDX-License-Identifier: BSD-3-Clause
"""The GPU trace: what streams and events do calls Python, once it is activated."""

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
print(torch.ones(2, device="openreg").tolist(), seen)
"""
    assert output(LISTEN + source) == "[1.0, 1.0] [('DeviceSynchronization',)]"
