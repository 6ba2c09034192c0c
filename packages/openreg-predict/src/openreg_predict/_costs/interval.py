# SPDX-License-Identifier: BSD-3-Clause
"""Times with an 80 % interval."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

# Between the errors of two kernels of one program: kernels of one class err together.
CORRELATION = 0.5


@dataclass(frozen=True, slots=True)
class Interval:
    """A predicted time, and the bounds between which 80 % of measured times lie.

    Attributes:
        value: The prediction in seconds.
        low: The lower bound in seconds.
        high: The upper bound in seconds.
    """

    value: float
    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.value <= self.high:
            raise ValueError(
                "an interval needs 0 <= low <= value <= high, got "
                f"low={self.low!r}, value={self.value!r}, high={self.high!r}"
            )

    @classmethod
    def exact(cls, value: float) -> Interval:
        """Returns an interval of zero width."""
        return cls(value, value, value)

    @classmethod
    def around(cls, value: float, below: float, above: float) -> Interval:
        """Returns an interval with bounds given as factors of the value.

        Args:
            value: The prediction in seconds.
            below: The factor of the lower bound, at most 1.
            above: The factor of the upper bound, at least 1.
        """
        return cls(value, value * min(below, 1.0), value * max(above, 1.0))

    @property
    def width(self) -> float:
        """The upper bound divided by the lower bound; 1 for an exact value."""
        if self.low == self.high:
            return 1.0
        return self.high / self.low if self.low else math.inf

    def __add__(self, other: Interval) -> Interval:
        """Adds times whose errors are fully correlated; :func:`total` assumes less."""
        return Interval(
            self.value + other.value, self.low + other.low, self.high + other.high
        )

    def __mul__(self, factor: float) -> Interval:
        """Multiplies the value and both bounds, such as for repeated kernels."""
        if factor < 0:
            raise ValueError(f"the factor of a time must not be negative: {factor!r}")
        return Interval(self.value * factor, self.low * factor, self.high * factor)

    __rmul__ = __mul__


ZERO = Interval(0.0, 0.0, 0.0)


def total(times: Iterable[Interval], correlation: float = CORRELATION) -> Interval:
    """Adds times whose errors are partly correlated.

    Args:
        times: The times to add.
        correlation: The correlation of any two errors: 1 adds the bounds, 0 adds the
            squares of their distances from the values.

    Returns:
        The sum of the values, and bounds that are narrower than the sums of the bounds.
    """
    value = below = above = below_squares = above_squares = 0.0
    for each in times:
        value += each.value
        below += each.value - each.low
        above += each.high - each.value
        below_squares += (each.value - each.low) ** 2
        above_squares += (each.high - each.value) ** 2
    below = math.sqrt(correlation * below**2 + (1 - correlation) * below_squares)
    above = math.sqrt(correlation * above**2 + (1 - correlation) * above_squares)
    return Interval(value, max(value - below, 0.0), value + above)


def longest(times: Iterable[Interval]) -> Interval:
    """Returns the time until all of several concurrent activities have finished."""
    all_times = list(times)
    if not all_times:
        return ZERO
    return Interval(
        max(each.value for each in all_times),
        max(each.low for each in all_times),
        max(each.high for each in all_times),
    )
