# SPDX-License-Identifier: BSD-3-Clause
"""Counts the calls of operators by the path that the dispatcher took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from openreg_aten import _C

Paths = Counter[tuple[str, str]]


@contextmanager
def counted() -> Iterator[Paths]:
    """Yields the calls by operator and path, filled in when the block ends."""
    calls: Paths = Counter()

    def now() -> Paths:
        return Counter({(name, path): n for name, path, n in _C.path_counts()})

    before = now()
    _C.count_paths(1)
    try:
        yield calls
    finally:
        _C.count_paths(-1)
        calls.update(now() - before)


def paths(function: Callable[[], object]) -> Counter[str]:
    """Counts the calls of a function's operators by path only."""
    counts: Counter[str] = Counter()
    with counted() as calls:
        function()
    for (_, path), count in calls.items():
        counts[path] += count
    return counts
