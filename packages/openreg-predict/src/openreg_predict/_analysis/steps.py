# SPDX-License-Identifier: BSD-3-Clause
"""Finds the steps of a program: the longest part of a run that repeats itself."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from openreg_predict._records.record import Enter, Op, RecordedRun

Tokens = npt.NDArray[np.int64]


def steps_of(record: RecordedRun) -> list[tuple[int, int]]:
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
    parts = _parts(record, places, tokens, bounds[-2], bounds[-1])
    bounds = sorted({b - i * period for i in range(count) for b in parts})
    indices = [places[i] if i < len(places) else len(record.events) for i in bounds]
    return list(pairwise(indices))


def _parts(
    record: RecordedRun, places: list[int], tokens: Tokens, begin: int, end: int
) -> list[int]:
    """Returns the bounds of the steps in a repetition, which may have several ones.

    A program that logs every second step repeats itself only after two steps. Steps end
    with the work of an optimizer, and without one begin with the call of a module.
    """
    phases = [
        getattr(record.events[places[i]], "phase", "") == "optimizer"
        for i in range(begin, end)
    ]
    ends = [
        begin + i + 1
        for i, is_last in enumerate(phases)
        if is_last and not (i + 1 < len(phases) and phases[i + 1])
    ]
    if ends:
        # A repetition may begin within a step; its end is then a part of the first one.
        shift = end - ends[-1]
        bounds = [begin, *(each + shift for each in ends)]
    else:
        calls = Counter(int(t) for t in tokens[begin:end] if t < 0)
        token = max(calls, key=lambda each: calls[each])
        at = [begin + int(i) for i in np.flatnonzero(tokens[begin:end] == token)]
        bounds = [each - at[0] + begin for each in at] + [end]
    counts = [Counter(tokens[a:b].tolist()) for a, b in pairwise(bounds)]
    largest = max(counts, key=lambda each: each.total())
    if all((each & largest).total() > 0.8 * largest.total() for each in counts):
        return bounds
    return [begin, end]


def _tokens(record: RecordedRun) -> tuple[list[int], Tokens]:
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


def _periods(tokens: Tokens) -> list[int]:
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


def _longest_run(equal: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """Returns the end and the length of the longest run of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], equal.astype(np.int8), [0]))))
    if not len(edges):
        return 0, 0
    starts, ends = edges[::2], edges[1::2]
    lengths = ends - starts
    last = len(lengths) - 1 - int(np.argmax(lengths[::-1]))
    return int(ends[last]), int(lengths[last])
