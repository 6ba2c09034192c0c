# SPDX-License-Identifier: BSD-3-Clause
"""Events: what a wait, a second record and a missing record mean."""

import threading

from openreg_runtime import Event, Stream

gate = threading.Event()
first, second = Stream(0), Stream(0)
event = Event()
print(event.query())  # never recorded: nothing to wait for
# prints: True

first.launch(gate.wait, 30)
event.record(first)
second.wait_event(event)  # holds what is enqueued on `second` from here on
second.launch(print, "second")
event.record(Stream(0))  # the last record counts, and is reached at once
print(event.query(), second.query())
# prints: True False
gate.set()
second.synchronize()
# prints: second
