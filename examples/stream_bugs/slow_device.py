# SPDX-License-Identifier: BSD-3-Clause
"""A device that starts no work until the host waits for it.

A missing wait is a bug on every device, but it shows only on a slow device. This device
is always slow enough.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from openreg_runtime import Device

_latches: list[threading.Event] = []


def _open(*_: int) -> None:
    for latch in _latches:
        latch.set()


def _listen() -> None:
    """Makes PyTorch call ``_open`` before each wait for a device, stream or event."""
    trace = torch.openreg._gpu_trace
    trace.DeviceSynchronizationCallbacks.add_callback(_open)
    trace.StreamSynchronizationCallbacks.add_callback(_open)
    trace.EventSynchronizationCallbacks.add_callback(_open)
    torch._C._activate_gpu_trace()


_listen()


@contextmanager
def slow_device() -> Iterator[None]:
    """Blocks the default stream of device 0 until the host waits or the block ends."""
    latch = threading.Event()
    _latches.append(latch)
    Device(0).default_stream.launch(latch.wait)
    try:
        yield
    finally:
        _latches.remove(latch)
        latch.set()
        torch.openreg.synchronize(0)
