# SPDX-License-Identifier: BSD-3-Clause
"""Callbacks for what streams and events do, and for waits of the host.

``torch._C._activate_gpu_trace()`` makes the device's C++ code call them, by the names
that ``torch.cuda._gpu_trace`` has. Streams and events come as the address of the
runtime's object. A callback runs before the call does, on its thread; an error in it is
logged. Allocations are not traced.
"""

from __future__ import annotations

from torch._utils import CallbackRegistry

EventCreationCallbacks: CallbackRegistry[int] = CallbackRegistry(
    "openreg event creation"
)
EventDeletionCallbacks: CallbackRegistry[int] = CallbackRegistry(
    "openreg event deletion"
)
EventRecordCallbacks: CallbackRegistry[int, int] = CallbackRegistry(
    "openreg event record"
)
EventWaitCallbacks: CallbackRegistry[int, int] = CallbackRegistry("openreg event wait")
StreamCreationCallbacks: CallbackRegistry[int] = CallbackRegistry(
    "openreg stream creation"
)
DeviceSynchronizationCallbacks: CallbackRegistry[[]] = CallbackRegistry(
    "openreg device synchronization"
)
StreamSynchronizationCallbacks: CallbackRegistry[int] = CallbackRegistry(
    "openreg stream synchronization"
)
EventSynchronizationCallbacks: CallbackRegistry[int] = CallbackRegistry(
    "openreg event synchronization"
)
