# SPDX-License-Identifier: BSD-3-Clause
"""Callbacks for what streams and events do, waits of the host, and memory.

``torch._C._activate_gpu_trace()`` makes the device's C++ code call them, by the names
that ``torch.cuda._gpu_trace`` has. Streams and events come as the address of the
runtime's object, memory as its address. A callback runs before the call does, on its
thread, except that memory must have been allocated; an error in it is logged.

Two things are not as on CUDA. The device is current when its synchronization is traced.
An event that ``Event.query`` finds reached is traced as a wait of the stream 0, which
stands for the host; and for ``Stream.query``, an event at the end of the stream is.
"""

from __future__ import annotations

import torch
from torch._utils import CallbackRegistry

from torch_openreg._mechanisms import mechanisms

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
MemoryAllocationCallbacks: CallbackRegistry[int] = CallbackRegistry(
    "openreg memory allocation"
)
MemoryDeallocationCallbacks: CallbackRegistry[int] = CallbackRegistry(
    "openreg memory deallocation"
)
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


def activate(user: str) -> None:
    """Makes the device call the callbacks from now on: PyTorch never stops it again.

    Args:
        user: Who needs it, as the error begins.

    Raises:
        RuntimeError: If ``OPENREG_DISABLE`` names ``gpu_trace`` or ``device_module``.
    """
    for mechanism in mechanisms():
        needed = mechanism.name in ("gpu_trace", "device_module")
        if needed and not mechanism.enabled:
            raise RuntimeError(
                f"{user} needs the mechanism {mechanism.name}, which "
                "OPENREG_DISABLE leaves out"
            )
    torch._C._activate_gpu_trace()
