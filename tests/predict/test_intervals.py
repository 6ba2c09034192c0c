# SPDX-License-Identifier: BSD-3-Clause
"""Arithmetic of intervals."""

from __future__ import annotations

import pytest

from openreg_predict import Interval, longest, total


def test_a_sum_adds_values_and_bounds():
    both = Interval(2, 1, 4) + Interval(3, 2, 5)
    assert both == Interval(5, 3, 9)


def test_a_multiple_scales_everything():
    assert 3 * Interval(2, 1, 4) == Interval(6, 3, 12)
    assert Interval(2, 1, 4).width == 4


def test_a_total_is_narrower_than_the_sum_of_bounds():
    parts = [Interval(2, 1, 4)] * 10
    added = total(parts)
    assert added.value == 20
    assert 10 < added.low < 20 < added.high < 40


def test_fully_correlated_errors_add():
    parts = [Interval(2, 1, 4), Interval(3, 2, 5)]
    assert total(parts, correlation=1) == Interval(5, 3, 9)


def test_independent_errors_add_as_squares():
    parts = [Interval(5, 2, 8), Interval(5, 1, 9)]
    assert total(parts, correlation=0) == Interval(10, 5, 15)


def test_the_longest_activity_decides():
    assert longest([Interval(2, 1, 9), Interval(3, 2, 4)]) == Interval(3, 2, 9)
    assert longest([]).value == 0


@pytest.mark.parametrize("bounds", [(1, 2, 3), (2, 1, 1.5), (1, -1, 2)])
def test_bounds_must_enclose_the_value(bounds):
    with pytest.raises(ValueError, match="low <= value <= high"):
        Interval(*bounds)
