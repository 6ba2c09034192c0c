# SPDX-License-Identifier: BSD-3-Clause
"""Named ranges of host code, like ``torch.cuda.nvtx``.

``torch.profiler`` shows them on the host, and on each stream around the kernels
launched inside. Each thread has a stack of ranges.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from torch.autograd.profiler import record_function

__all__ = ["mark", "range", "range_pop", "range_push"]


class _Ranges(threading.local):
    def __init__(self) -> None:
        self.open: list[record_function] = []


_ranges = _Ranges()


def range_push(msg: str) -> int:
    """Begins a range of this thread; counterpart of ``torch.cuda.nvtx.range_push``.

    Args:
        msg: Its name.

    Returns:
        The number of enclosing ranges of the thread.
    """
    started = record_function(msg)
    started.__enter__()  # type: ignore[no-untyped-call]
    _ranges.open.append(started)
    return len(_ranges.open) - 1


def range_pop() -> int:
    """Ends the last range of this thread; counterpart of ``torch.cuda.nvtx.range_pop``.

    Returns:
        The number of enclosing ranges; -1 if no range was open.
    """
    if not _ranges.open:
        return -1
    _ranges.open.pop().__exit__(None, None, None)
    return len(_ranges.open)


def mark(msg: str) -> None:
    """Marks a moment; counterpart of ``torch.cuda.nvtx.mark``.

    Args:
        msg: Its name.
    """
    with record_function(msg):
        pass


@contextmanager
def range(msg: str) -> Iterator[None]:
    """Creates a range around the block; counterpart of ``torch.cuda.nvtx.range``.

    Args:
        msg: Its name.
    """
    range_push(msg)
    try:
        yield
    finally:
        range_pop()
