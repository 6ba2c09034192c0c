# SPDX-License-Identifier: BSD-3-Clause
"""Finds unordered accesses to memory, and reads of memory that was never written.

Like ``torch.cuda._sanitizer``, but it also finds memory that is reused while another
stream still uses it, because ``record_stream`` is missing, pinned memory that the host
uses before a copy is completed, and the first operator that reads the result of
``torch.empty`` before an operator has written it. It analyses the order of the program,
not the time at which work runs, so its results are reproducible.

``OPENREG_SANITIZER=1`` enables it when torch is imported.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from ._errors import (
    Access,
    UninitializedReadError,
    UnsynchronizedAccessError,
    UseAfterFreeError,
)

__all__ = [
    "Access",
    "UninitializedReadError",
    "UnsynchronizedAccessError",
    "UseAfterFreeError",
    "disable",
    "enable",
    "enabled",
    "is_enabled",
]


def enable() -> None:
    """Analyses all operators until :func:`disable`.

    It covers the calling thread, Python threads that start later, and backward passes
    of both, and all events and waits. Enable it at the beginning of the program,
    because it does not see earlier work. A second call does nothing.

    An unordered access of an operator raises :class:`UnsynchronizedAccessError`, and a
    read of memory that no operator has written :class:`UninitializedReadError`, in
    backward passes through ``backward()``.

    Raises:
        RuntimeError: If ``OPENREG_DISABLE`` names ``gpu_trace`` or ``device_module``.
    """
    from . import _mode

    _mode.enable()


def disable() -> None:
    """Disables the analysis; does nothing if it is not enabled.

    Raises:
        RuntimeError: If a dispatch mode was entered since and is still active.
        UnsynchronizedAccessError: If the host has written to pinned memory without an
            operator, for example with NumPy, while a stream may read it.
    """
    mode = _loaded()
    if mode is not None:
        mode.disable()


@contextmanager
def enabled() -> Iterator[None]:
    """Enables the sanitizer for a block.

    Blocks may be nested and run in several threads: they share one analysis.

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
    """Returns whether the sanitizer is enabled in any thread.

    It is not enabled in a child that was forked after its parent had used a device,
    because that child cannot use devices.
    """
    mode = _loaded()
    return mode is not None and mode.is_running()


def _loaded() -> ModuleType | None:
    """Returns the module that enables the sanitizer, if it was ever loaded."""
    return sys.modules.get(f"{__name__}._mode")
