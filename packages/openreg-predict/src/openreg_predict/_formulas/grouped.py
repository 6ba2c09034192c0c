# SPDX-License-Identifier: BSD-3-Clause
"""The products of a mixture of experts: two products for each expert that has tokens.

The weights of the active experts are read once; each expert's tokens fill whole tiles.
"""

from __future__ import annotations

import numpy as np

from openreg_predict._formulas.bounds import overlapped, transfer
from openreg_predict._formulas.columns import (
    MOST,
    POWER,
    Array,
    Columns,
    Constants,
    clock_share,
)

START: Constants = {
    "t0": 1.5e-5,  # s, routing, sorting and the start of the kernels
    "efficiency": 0.6,  # of the peak
    "bandwidth": 0.75,  # of the memory's bandwidth
    "tile": 32.0,  # tokens of an expert that a tile holds at least
    "l2": 0.3,  # of 64 bytes per cycle and unit
    "resident": 0.4,  # of the L2, what stays there between repetitions
    "token": 2e-9,  # s, for each token and expert: sorting and adding
    "skew": 0.2,  # of all tokens, what the fullest expert has more
    "overlap": 0.3,  # the share of the shorter bound that is added
    **POWER,
}


def seconds(c: Constants, x: Columns) -> Array:
    """Returns the time of each layer.

    Args:
        c: The constants.
        x: Columns ``t`` (tokens), ``h``, ``i``, ``topk``, ``e``, ``active`` (experts
            with tokens), ``read``, ``written`` and the columns of the
            device.
    """
    share = clock_share(c, x)
    pairs = x["t"] * x["topk"]
    rows = pairs + x["active"] * c["tile"] * (1 - np.exp(-pairs / x["active"]))
    unit_rate = x["rate"] * share / x["units"]
    operations = 6 * rows * x["h"] * x["i"]
    operations = operations * (1 + c["skew"] * x["active"] / (x["active"] + pairs))
    compute = operations / (unit_rate * x["units"] * np.minimum(c["efficiency"], MOST))
    size = x["read"] + x["written"] + x["size"] * pairs * (2 * x["h"] + 6 * x["i"])
    memory = transfer(c, x, size, x["clock"])
    time = overlapped(c, compute, memory)
    result: Array = c["t0"] + c["token"] * pairs + time
    return result


def features(x: Columns) -> Array:
    """Returns the logarithms of the shape, for the correction of residuals."""
    names = ("t", "h", "i", "topk", "e")
    return np.log2(np.stack([x[n] for n in names], axis=1))
