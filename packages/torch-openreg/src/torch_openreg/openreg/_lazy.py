# SPDX-License-Identifier: BSD-3-Clause
"""Lazy initialization: the devices start at their first use, not at import.

Seeds that are set earlier are stored until then, so that ``torch.manual_seed`` neither
starts a device nor prevents the process from forking.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable
from typing import NamedTuple

from openreg_aten import _C

_started = False
_starting = False
# Reentrant, because a stored call may need the devices.
_lock = threading.RLock()


class _Waiting(NamedTuple):
    call: Callable[[], object]
    seeds: bool
    origin: traceback.StackSummary


_waiting: list[_Waiting] = []


def is_initialized() -> bool:
    """Returns whether the devices have been started in this process.

    Always false in a forked child. As ``torch.cuda.is_initialized``.
    """
    return _started and not _C.is_in_bad_fork()


def init() -> None:
    """Starts the devices if they have not started. As ``torch.cuda.init``.

    Every function that needs a device calls it.

    Raises:
        RuntimeError: In a process that was forked after the devices had started, or if
            an ``OPENREG_`` environment variable has an invalid value.
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
                _run(_waiting.pop(0))
        finally:
            _starting = False
        _started = True


def lazy_call(
    call: Callable[[], object], *, seed: bool = False, seed_all: bool = False
) -> None:
    """Runs ``call`` now if the devices have started, else as soon as they start.

    The error of a deferred call contains its origin. As ``torch.cuda._lazy_call``.

    Args:
        call: A function without arguments.
        seed: Whether ``call`` sets the state of a generator.
        seed_all: Whether it sets the states of all generators, so that earlier deferred
            seeds are dropped.
    """
    with _lock:
        if is_initialized():
            call()
            return
        if seed_all:
            _waiting[:] = [entry for entry in _waiting if not entry.seeds]
        frames = traceback.walk_stack(sys._getframe(1))
        origin = traceback.StackSummary.extract(frames, lookup_lines=False)
        origin.reverse()
        _waiting.append(_Waiting(call, seed or seed_all, origin))


def _run(entry: _Waiting) -> None:
    try:
        entry.call()
    except Exception as error:
        origin = "".join(entry.origin.format())
        error.add_note(f"The call waited for the devices to start. Made at:\n{origin}")
        raise
