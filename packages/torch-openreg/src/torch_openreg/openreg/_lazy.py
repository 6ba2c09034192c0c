# SPDX-License-Identifier: BSD-3-Clause
"""Lazy initialization: the devices start at their first use, not at import.

Seeds that are set before wait here until then, so that ``torch.manual_seed`` neither
starts a device nor keeps the process from forking.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from openreg_aten import _C

_started = False
_starting = False
# Reentrant: a waiting call may itself need the devices.
_lock = threading.RLock()
_waiting: list[Callable[[], object]] = []


def is_initialized() -> bool:
    """Tells whether the devices have been started in this process.

    Always false in a forked child. As ``torch.cuda.is_initialized``.
    """
    return _started and not _C.is_in_bad_fork()


def init() -> None:
    """Starts the devices; does nothing when they run already. As ``torch.cuda.init``.

    Every function that needs a device does this by itself.

    Raises:
        RuntimeError: In a process that was forked after the devices had started, and if
            an ``OPENREG_`` environment variable has a wrong value.
    """
    global _started, _starting
    if is_initialized():
        return
    with _lock:
        if _starting:
            return
        _C.init()
        _starting = True
        try:
            while _waiting:
                _waiting.pop(0)()
        finally:
            _starting = False
        _started = True


def lazy_call(call: Callable[[], object], *, supersedes: bool = False) -> None:
    """Runs ``call`` now if the devices have started, or else as soon as they start.

    Args:
        call: Function without arguments.
        supersedes: Whether ``call`` undoes what all calls that wait would do.
    """
    with _lock:
        if is_initialized():
            call()
            return
        if supersedes:
            _waiting.clear()
        _waiting.append(call)
