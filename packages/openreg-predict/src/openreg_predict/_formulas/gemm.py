# SPDX-License-Identifier: BSD-3-Clause
"""Matrix products: waves of tiles, with the sum over k split where tiles are few.

Libraries choose among kernels, so the model takes the fastest of several tiles and
splits. A tile is bound by the arithmetic of one unit, by the bytes that the L2 feeds
to it, or by the latency of a step along k.
"""

from __future__ import annotations

import numpy as np

from openreg_predict._formulas.bounds import LINE, l2_bandwidth, overlapped, transfer
from openreg_predict._formulas.columns import (
    MOST,
    POWER,
    Array,
    Columns,
    Constants,
    clock_share,
)

START: Constants = {
    "t0": 2.3e-6,  # s, start and end of a kernel
    "efficiency": 0.9,  # of the peak, in a large tile
    "feed": 1.0,  # of 64 bytes per cycle and unit
    "prologue": 1500.0,  # cycles of a tile that do not depend on k
    "latency": 3.0,  # cycles for each step of k
    "bandwidth": 0.82,  # of the memory's bandwidth
    "l2": 0.5,  # of 64 bytes per cycle and unit
    "resident": 0.4,  # of the L2, what stays there between repetitions
    "overlap": 0.25,  # the share of the shorter of the two bounds that is added
    "split": 1.5e-6,  # s, to add the parts of a split sum
    "wide": 0.1,  # for each factor of 2 of n above 8192: pages and L2 misses
    **POWER,
}
_TILES = (
    (256, 128), (128, 256), (128, 128), (128, 64), (64, 128), (64, 64),
    (64, 32), (32, 64), (32, 32), (16, 64), (64, 16), (16, 32),
)  # fmt: skip
_SPLITS = (1, 2, 3, 4, 6, 8, 16, 32)
_HEIGHT = np.array([[t[0] for t in _TILES for _ in _SPLITS]], dtype=np.float64)
_WIDTH = np.array([[t[1] for t in _TILES for _ in _SPLITS]], dtype=np.float64)
_PARTS = np.array([[s for _ in _TILES for s in _SPLITS]], dtype=np.float64)


def seconds(c: Constants, x: Columns) -> Array:
    """Returns the time of each product.

    Args:
        c: The constants.
        x: Columns ``b``, ``m``, ``n``, ``k``, ``read``, ``written``, ``size`` and those
            of the device.
    """
    share = clock_share(c, x)
    hertz = x["clock"] * share
    column = {name: x[name][:, None] for name in ("b", "m", "n", "k", "size", "units")}
    b, m, n, k, size = (column[name] for name in ("b", "m", "n", "k", "size"))
    unit_rate = (x["rate"] * share / x["units"])[:, None]
    cycle = (1 / hertz)[:, None]
    parts = np.minimum(_PARTS, np.maximum(1, np.floor(k / 64)))
    depth = np.ceil(k / parts)
    tiles = b * np.ceil(m / _HEIGHT) * np.ceil(n / _WIDTH) * parts
    arithmetic = (
        2 * _HEIGHT * _WIDTH * depth / (unit_rate * np.minimum(c["efficiency"], MOST))
    )
    feed = (_HEIGHT + _WIDTH) * depth * size * cycle / (c["feed"] * LINE)
    latency = depth * c["latency"] * cycle
    tile = (arithmetic**4 + feed**4 + latency**4) ** 0.25 + c["prologue"] * cycle
    wide = 1 + c["wide"] * np.clip(np.log2(n / 8192), 0, 2)
    compute = np.ceil(tiles / column["units"]) * tile * wide
    size_all = x["read"] + x["written"]
    cache = l2_bandwidth(c, x, hertz)
    memory = transfer(c, x, size_all, hertz)[:, None]
    adding = np.where(parts > 1, c["split"] + 8 * b * m * n * parts / cache[:, None], 0)
    time = overlapped(c, compute, memory)
    result: Array = c["t0"] + (time + adding).min(axis=1)
    return result


def features(x: Columns) -> Array:
    """Returns the logarithms of the shape, for the correction of residuals."""
    return np.log2(np.stack([x["m"], x["n"], x["k"], x["b"]], axis=1))
