# SPDX-License-Identifier: BSD-3-Clause
"""Finds work on several streams, or on the host, that uses memory without an order.

As ``torch.cuda._sanitizer``, and with more to find: memory that is handed out again
while another stream uses it, since ``record_stream`` was forgotten, and pinned memory
that the host uses before a copy is done. It looks at the program, and not at the times
when work runs: what it finds, it finds every time.

``OPENREG_SANITIZER=1`` enables it when torch is imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ._errors import Access, UnsynchronizedAccessError, UseAfterFreeError

__all__ = [
    "Access",
    "UnsynchronizedAccessError",
    "UseAfterFreeError",
    "disable",
    "enable",
    "enabled",
    "is_enabled",
]

_enabled = False  # by enable()
_blocks = 0  # of enabled() that are open, in all threads


def enable() -> None:
    """Looks at all operators from now on, until :func:`disable`.

    It sees the calling thread, threads that Python starts later, and backward passes of
    both; and all events and waits. Enable it at the beginning of the program: of
    earlier work it knows nothing. Enabling it twice is enabling it once.

    An operator that uses memory without an order raises
    :class:`UnsynchronizedAccessError`, in backward passes through ``backward()``.

    Raises:
        RuntimeError: If ``OPENREG_DISABLE`` names ``gpu_trace`` or ``device_module``.
    """
    global _enabled
    from . import _mode

    _mode.start()
    _mode.join()
    _enabled = True


def disable() -> None:
    """Ends what :func:`enable` began; does nothing if that was not called.

    Raises:
        RuntimeError: If a dispatch mode was entered since, and not left.
    """
    global _enabled
    if not _enabled:
        return
    from . import _mode

    if not _blocks:
        _mode.leave()
        _mode.stop()
    _enabled = False


@contextmanager
def enabled() -> Iterator[None]:
    """Enables the sanitizer for a block, as :func:`enable` does.

    Blocks may lie in each other, and in several threads: they share what is known.

    Raises:
        RuntimeError: If ``OPENREG_DISABLE`` names ``gpu_trace`` or ``device_module``.
    """
    global _blocks
    from . import _mode

    _mode.start()
    joined = _mode.join()
    _blocks += 1
    try:
        yield
    finally:
        _blocks -= 1
        if joined:
            _mode.leave()
        if not _blocks and not _enabled:
            _mode.stop()


def is_enabled() -> bool:
    """Tells whether the sanitizer is enabled, in whatever thread.

    It is not in a forked child, which can not use the devices.
    """
    if not _enabled and not _blocks:
        return False
    from . import _mode

    return _mode.is_running()
