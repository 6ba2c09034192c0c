# SPDX-License-Identifier: BSD-3-Clause
"""Corrects predictions for a device from some rows that were measured on it.

The logarithms of measured / predicted are taken as a sum of an error of the device, an
error that depends smoothly on the shape, and noise. Rows of one entry correct that
entry; where an entry has no rows, its predictions stay.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from openreg_predict._costs._columns import Array, columns
from openreg_predict._device import Device
from openreg_predict._entries import Entry, entries, entry_of
from openreg_predict._interval import Interval
from openreg_predict._work import Work

# Standard deviations of the logarithm, and the distance over which shapes are alike:
# chosen by calibrating training devices that an entry was fitted without.
_OF_DEVICE = 0.3
_OF_SHAPE = 0.15
_NOISE = 0.08
_LENGTH = 3.0
_TO_80_PERCENT = 1.28


def _covariance(points: Array, others: Array) -> Array:
    difference = (points[:, None] - others[None]) / _LENGTH
    near = np.exp(-0.5 * (difference**2).sum(axis=2))
    result: Array = _OF_DEVICE**2 + _OF_SHAPE**2 * near
    return result


@dataclass(frozen=True)
class _Known:
    """The rows of one entry, with what is needed to interpolate their residuals."""

    points: Array
    residuals: Array
    inverse: Array


class Calibration:
    """What the rows of one device tell about predictions for it.

    Args:
        works: The works of the rows.
        measured: Their times in seconds.
        device: The device.
        fitted: The entries; those of the package by default.
    """

    def __init__(
        self,
        works: Sequence[Work],
        measured: Sequence[float],
        device: Device,
        fitted: Mapping[str, Entry] | None = None,
    ) -> None:
        self._device = device
        self._entries = entries() if fitted is None else fitted
        groups: dict[str, list[int]] = defaultdict(list)
        for i, work in enumerate(works):
            if not measured[i] > 0:
                raise ValueError(
                    f"a measured time must be positive, got {measured[i]!r}"
                )
            groups[entry_of(work, device)].append(i)
        self._known = {}
        for name, places in groups.items():
            some = [works[i] for i in places]
            times = self._entries[name].seconds(some, [device] * len(some))
            residuals = np.log(np.array([measured[i] for i in places]) / times)
            points = self._points(name, some)
            matrix = _covariance(points, points) + _NOISE**2 * np.eye(len(some))
            inverse = np.linalg.inv(matrix).astype(np.float64)
            self._known[name] = _Known(points, residuals, inverse)

    def _points(self, name: str, works: Sequence[Work]) -> Array:
        family = self._entries[name].family
        x = columns(works, [self._device] * len(works), family.facts)
        result: Array = family.module.features(x)
        return result

    def corrected(
        self, works: Sequence[Work], times: Sequence[Interval]
    ) -> list[Interval]:
        """Returns predictions with the correction, and with bounds that it justifies.

        Args:
            works: The works.
            times: Their predictions for the device.
        """
        result = list(times)
        groups: dict[str, list[int]] = defaultdict(list)
        for i, work in enumerate(works):
            if work.kind not in ("view", "transfer"):
                groups[entry_of(work, self._device)].append(i)
        for name, places in groups.items():
            known = self._known.get(name)
            if known is None:
                continue
            near = _covariance(
                self._points(name, [works[i] for i in places]), known.points
            )
            change = near @ known.inverse @ known.residuals
            explained = np.einsum("ij,jk,ik->i", near, known.inverse, near)
            variance = _OF_DEVICE**2 + _OF_SHAPE**2 - explained + _NOISE**2
            spread = np.exp(_TO_80_PERCENT * np.sqrt(np.maximum(variance, _NOISE**2)))
            for i, log, width in zip(places, change, spread, strict=True):
                value = times[i].value * float(np.exp(log))
                result[i] = Interval.around(value, 1 / float(width), float(width))
        return result
