# SPDX-License-Identifier: BSD-3-Clause
"""The time of one operator on a described device."""

from __future__ import annotations

from openreg_predict._device import Device
from openreg_predict._interval import Interval
from openreg_predict._work import Work


def predict(work: Work, device: Device, *, sheet_only: bool = False) -> Interval:
    """Returns the time that the device needs for the work, without host time.

    Args:
        work: The work of one operator; a view takes no time.
        device: The described device.
        sheet_only: Whether to ignore measured fields of the device.
    """
    device = device.sheet if sheet_only else device
    if work.kind == "view":
        return Interval.exact(0.0)
    peak = device.get(f"matrix_{work.dtype}", "vector_f32") or device["vector_f32"]
    time = max(work.flops / peak, work.bytes / device["memory_bandwidth"]) + 3e-6
    return Interval.around(time, 0.6, 1.6)
