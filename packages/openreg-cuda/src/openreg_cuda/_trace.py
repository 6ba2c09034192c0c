# SPDX-License-Identifier: BSD-3-Clause
"""``torch.cuda._gpu_trace``: default streams have the handle 0, as on CUDA.

The devices trace every stream by its handle in the runtime, and the host as stream 0
when it finds an event reached. CUDA does not trace that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps

import torch
from torch.cuda import _gpu_trace

from openreg_cuda._backend import compiled

_HOST = 0


@cache
def _default_streams() -> frozenset[int]:
    return frozenset(
        torch.cuda.default_stream(device).native_handle  # type: ignore[attr-defined]
        for device in range(compiled().device_count())
    )


def _translated(
    register: Callable[[Callable[..., None]], None],
) -> Callable[[Callable[..., None]], None]:
    """Returns a function that registers callbacks whose last argument is a stream."""

    @wraps(register)
    def register_translated(callback: Callable[..., None]) -> None:
        def call(*arguments: int) -> None:
            *others, stream = arguments
            if stream != _HOST:
                callback(*others, 0 if stream in _default_streams() else stream)

        register(call)

    return register_translated


def replace() -> None:
    """Replaces the functions that register callbacks with a stream."""
    for event in ("event_record", "event_wait", "stream_synchronization"):
        name = f"register_callback_for_{event}"
        setattr(_gpu_trace, name, _translated(getattr(_gpu_trace, name)))
