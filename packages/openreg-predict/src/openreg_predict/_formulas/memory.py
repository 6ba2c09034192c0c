# SPDX-License-Identifier: BSD-3-Clause
"""Operators bound by bytes: pointwise, copies, reductions, norms, gathers and the rest.

A row that exceeds what a multiprocessor holds is read again, so the bytes of norms grow
with the length of a row.
"""

from __future__ import annotations

import numpy as np

from openreg_predict._formulas.bounds import l2_share, transfer
from openreg_predict._formulas.columns import Array, Columns, Constants

START: Constants = {
    "t0": 2.0e-6,  # s, start and end of a kernel
    "bandwidth": 0.85,  # of the memory's bandwidth
    "ramp": 1.5e-6,  # s, until all units have loads in flight
    "l2": 0.3,  # of 64 bytes per cycle and unit
    "resident": 0.3,  # of the L2, what stays there between repetitions
    "again": 0.5,  # of the bytes, read again for long rows
    "long": 2048.0,  # elements of a row that is read again in half of the cases
    "work": 3.0,  # vector operations per element
    "floor": 1e-9,  # s, of harnesses that measure on the host
}


def seconds(c: Constants, x: Columns) -> Array:
    """Returns the time of each operator.

    Args:
        c: The constants.
        x: Columns ``read``, ``written``, ``flops``, ``n`` (row length; 1 if there are
            no rows), ``host_timed`` (1 if a harness measured on the host) and the
            columns of the device.
    """
    size = x["read"] + x["written"]
    repeated = np.where(x["n"] > 1, 1 / (1 + (c["long"] / x["n"]) ** 2), 0)
    size = size * (1 + c["again"] * repeated)
    memory = transfer(c, x, size, x["clock"])
    compute = c["work"] * x["flops"] / x["vector"]
    time = (
        c["t0"]
        + c["ramp"] * (1 - l2_share(c, x, size))
        + (memory**4 + compute**4) ** 0.25
    )
    floor = c["floor"] * x["host_timed"]
    result: Array = (time**4 + floor**4) ** 0.25
    return result


def features(x: Columns) -> Array:
    """Returns the logarithms of the shape, for the correction of residuals."""
    return np.log2(np.stack([x["m"], x["n"]], axis=1))
