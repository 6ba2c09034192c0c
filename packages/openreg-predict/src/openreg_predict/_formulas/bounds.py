# SPDX-License-Identifier: BSD-3-Clause
"""Bounds that the models of several classes share."""

from __future__ import annotations

import numpy as np

from openreg_predict._formulas.columns import MOST, Array, Columns, Constants

LINE = 64.0  # bytes that the L2 delivers per cycle and unit


def l2_share(c: Constants, x: Columns, size: Array) -> Array:
    """Returns the share of bytes that stay in the L2 between repetitions.

    Args:
        c: The constants, of which ``resident`` is the usable share of the L2.
        x: The columns of the device.
        size: Bytes of each operator.
    """
    share: Array = 1 / (1 + (size / (c["resident"] * x["l2"])) ** 3)
    return share


def l2_bandwidth(c: Constants, x: Columns, hertz: Array) -> Array:
    """Returns the bandwidth of the L2 at a clock, in byte/s."""
    bandwidth: Array = c["l2"] * x["units"] * hertz * LINE
    return bandwidth


def transfer(c: Constants, x: Columns, size: Array, hertz: Array) -> Array:
    """Returns the seconds that the L2 and the memory need for the bytes.

    Args:
        c: The constants ``bandwidth``, ``l2`` and ``resident``.
        x: The columns of the device.
        size: Bytes of each operator.
        hertz: The clock of the L2.
    """
    hot = l2_share(c, x, size)
    of_memory = min(c["bandwidth"], MOST) * x["bandwidth"]
    seconds: Array = size * (1 - hot) / of_memory
    return seconds + size * hot / l2_bandwidth(c, x, hertz)


def overlapped(c: Constants, compute: Array, memory: Array) -> Array:
    """Returns the longer time, with a share ``overlap`` of the shorter one."""
    return np.maximum(compute, memory) + c["overlap"] * np.minimum(compute, memory)
