# SPDX-License-Identifier: BSD-3-Clause
"""Finds work on several streams, or on the host, that uses memory without an order.

As ``torch.cuda._sanitizer``, and with more to find: memory that is handed out again
while another stream uses it, since ``record_stream`` was forgotten, and pinned memory
that the host uses before a copy is completed. It looks at the program, and not at the
times when work runs: what it finds, it finds every time.

``OPENREG_SANITIZER=1`` enables it when torch is imported.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

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
    from . import _mode

    _mode.enable()


def disable() -> None:
    """Ends what :func:`enable` began; does nothing if that was not called.

    Raises:
        RuntimeError: If a dispatch mode was entered since, and not left.
        UnsynchronizedAccessError: If the host has written to pinned memory without an
            operator, as NumPy does, while a stream may read it.
    """
    mode = _loaded()
    if mode is not None:
        mode.disable()


@contextmanager
def enabled() -> Iterator[None]:
    """Enables the sanitizer for a block, as :func:`enable` does.

    Blocks may lie in each other, and in several threads: they share what is known.

    Raises:
        RuntimeError: If ``OPENREG_DISABLE`` names ``gpu_trace`` or ``device_module``.
        UnsynchronizedAccessError: At the end of the block, for what :func:`disable`
            reports.
    """
    from . import _mode

    _mode.start()
    try:
        _mode.join()
        try:
            yield
        finally:
            _mode.leave()
        _mode.report()
    finally:
        _mode.stop()


def is_enabled() -> bool:
    """Tells whether the sanitizer is enabled, in whatever thread.

    It is not in a child that was forked after its parent had used a device, for such a
    child cannot use devices.
    """
    mode = _loaded()
    return mode is not None and mode.is_running()


def _loaded() -> ModuleType | None:
    """Returns what enables the sanitizer, if that was ever needed."""
    return sys.modules.get(f"{__name__}._mode")
