# SPDX-License-Identifier: BSD-3-Clause
"""Finds the steps of a program: the longest part of a run that repeats itself."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np

from openreg_predict._record import Enter, Op, Record


def steps_of(record: Record) -> list[tuple[int, int]]:
    """Returns the steps of a record, as the first event and the one after the last.

    Operators are compared by name and module, so that batches of different sizes are
    equal. A step has the call of an outermost module. Without a repetition the whole
    record is one step.
    """
    places, tokens = _tokens(record)
    whole = [(0, len(record.events))]
    if len(tokens) < 2:
        return whole
    best = (0, 0, 0)
    for period in _periods(tokens):
        end, length = _longest_run(tokens[period:] == tokens[:-period])
        covered = length + period
        if length >= period and (covered, -period) > (best[0], -best[1]):
            best = (covered, period, end + period)
    covered, period, end = best
    if not covered or covered < 0.3 * len(tokens):
        return whole
    count = covered // period
    bounds = [end - (count - i) * period for i in range(count + 1)]
    indices = [places[i] if i < len(places) else len(record.events) for i in bounds]
    return list(pairwise(indices))


def _tokens(record: Record) -> tuple[list[int], np.ndarray]:
    """Returns the places of operators and calls in the record, and a number of each.

    Calls of outermost modules are negative.
    """
    numbers: dict[tuple[object, ...], int] = {}
    places: list[int] = []
    tokens: list[int] = []
    for index, event in enumerate(record.events):
        if isinstance(event, Op):
            key: tuple[object, ...] = (event.call.name, event.module, event.phase)
            token = numbers.setdefault(key, len(numbers))
        elif isinstance(event, Enter):
            token = -1 - event.module
        else:
            continue
        places.append(index)
        tokens.append(token)
    return places, np.array(tokens, dtype=np.int64)


def _periods(tokens: np.ndarray) -> list[int]:
    """Returns the distances between calls of the same outermost module."""
    calls = Counter(int(token) for token in tokens if token < 0)
    found: set[int] = set()
    for token, count in calls.items():
        if count < 2:
            continue
        at = np.flatnonzero(tokens == token)
        for back in range(1, min(count, 9)):
            found |= {int(each) for each in at[back:] - at[:-back]}
    return sorted(each for each in found if each <= len(tokens) // 2)[:400]


def _longest_run(equal: np.ndarray) -> tuple[int, int]:
    """Returns the end and the length of the longest run of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], equal.astype(np.int8), [0]))))
    if not len(edges):
        return 0, 0
    starts, ends = edges[::2], edges[1::2]
    lengths = ends - starts
    last = len(lengths) - 1 - int(np.argmax(lengths[::-1]))
    return int(ends[last]), int(lengths[last])
