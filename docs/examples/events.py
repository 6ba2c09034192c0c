# SPDX-License-Identifier: BSD-3-Clause
"""Events that are never recorded, recorded once, or recorded twice."""

import threading

from openreg_runtime import Event, Stream

gate = threading.Event()
first, second = Stream(0), Stream(0)
event = Event()
print(event.query())  # never recorded: nothing to wait for
# prints: True

first.launch(gate.wait, 30)
event.record(first)
second.wait_event(event)  # blocks all later work on `second`
second.launch(print, "second")
event.record(Stream(0))  # replaces the first record, and completes immediately
print(event.query(), second.query())
# prints: True False
gate.set()
second.synchronize()
# prints: second
