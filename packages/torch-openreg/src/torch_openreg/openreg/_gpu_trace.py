# SPDX-License-Identifier: BSD-3-Clause
"""Callbacks for streams, events, host waits and memory.

``torch._C._activate_gpu_trace()`` makes the device's C++ code call them; their names
are the same as in ``torch.cuda._gpu_trace``. Streams and events are passed as the
address of the runtime's object, memory as its address. A callback runs before the
traced call, on its thread, except after an allocation. An error in a callback is
logged.

There are two differences from CUDA. The device is current when its synchronization is
traced. If ``Event.query`` finds an event reached, it is traced as a wait of stream 0,
which represents the host. For ``Stream.query``, an event at the end of the stream is
traced in the same way.
"""

from __future__ import annotations

import torch
from torch._utils import CallbackRegistry

from torch_openreg._mechanisms import mechanisms

from ._utils import IS_CUDA

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

if IS_CUDA:  # PyTorch then calls the callbacks of torch.cuda
    from torch.cuda import _gpu_trace as _cuda_trace

    globals().update(
        {
            name: registry
            for name, registry in vars(_cuda_trace).items()
            if isinstance(registry, CallbackRegistry)
        }
    )


def activate(user: str) -> None:
    """Enables the callbacks; PyTorch cannot disable them again.

    Args:
        user: The caller's name, which begins the error.

    Raises:
        RuntimeError: If ``OPENREG_DISABLE`` names ``gpu_trace`` or ``device_module``.
    """
    needed = {"gpu_trace"}
    if not IS_CUDA:  # torch.cuda is there
        needed.add("device_module")
    for mechanism in mechanisms():
        if mechanism.name in needed and not mechanism.enabled:
            raise RuntimeError(
                f"{user} needs the mechanism {mechanism.name}, which "
                "OPENREG_DISABLE leaves out"
            )
    torch._C._activate_gpu_trace()
