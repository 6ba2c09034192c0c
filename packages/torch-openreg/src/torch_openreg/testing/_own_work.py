# SPDX-License-Identifier: BSD-3-Clause
"""Marks work of the test helpers, which is not part of the tested program."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_mine = threading.local()


@contextmanager
def own_work() -> Iterator[None]:
    """Marks the block in this thread as work of a helper."""
    before = is_own_work()
    _mine.active = True
    try:
        yield
    finally:
        _mine.active = before


def is_own_work() -> bool:
    """Returns whether a helper is working in this thread."""
    return bool(getattr(_mine, "active", False))
