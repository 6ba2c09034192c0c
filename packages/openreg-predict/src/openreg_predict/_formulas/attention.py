# SPDX-License-Identifier: BSD-3-Clause
"""Attention in one kernel: tiles of queries, or parts of the keys if there are few.

A causal mask halves the operations, but the longest tile still sees all keys. With few
queries the time is that of reading the keys and values, which all heads of a group
share.
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
    "t0": 8e-6,  # s, start and end, with the write of the cache
    "efficiency": 0.6,  # of the peak, for heads of 128
    "narrow": 0.5,  # power of (d / 128) for narrower heads
    "bandwidth": 0.8,  # of the memory's bandwidth
    "l2": 0.4,  # of 64 bytes per cycle and unit
    "resident": 0.4,  # of the L2, what stays there between repetitions
    "step": 1200.0,  # cycles of a step of 128 keys, which do not depend on the rate
    "overlap": 0.3,  # the share of the shorter bound that is added
    "merge": 2e-6,  # s, to merge the parts of split keys
    "sequence": 2e-9,  # s, for each sequence of the batch
    **POWER,
}
_TILE = 128.0


def seconds(c: Constants, x: Columns) -> Array:
    """Returns the time of each call.

    Args:
        c: The constants.
        x: Columns ``b``, ``s`` (queries), ``t`` (keys), ``h``, ``kv``, ``d``,
            ``causal``, ``scale`` (operations relative to a forward pass), ``read``,
            ``written`` and the columns of the device.
    """
    share = clock_share(c, x)
    hertz = x["clock"] * share
    unit_rate = x["rate"] * share / x["units"]
    group = np.where(x["s"] * x["h"] / x["kv"] <= _TILE, x["h"] / x["kv"], 1)
    rows = x["s"] * group
    blocks = x["b"] * x["h"] / group * np.ceil(rows / _TILE)
    height = np.minimum(_TILE, 16 * np.ceil(np.minimum(rows, _TILE) / 16))
    height = np.maximum(height, 64)
    keys = np.maximum(x["t"], _TILE)
    efficiency = (
        np.minimum(c["efficiency"], MOST) * np.minimum(x["d"] / 128, 1) ** c["narrow"]
    )
    long = 4 * height * keys * x["d"] / (unit_rate * efficiency)
    long = long + np.ceil(keys / _TILE) * c["step"] / hertz
    mean = long * np.where(x["causal"] > 0, 0.5 * (1 + _TILE / keys), 1)
    splits = np.clip(
        np.floor(x["units"] / blocks), 1, np.maximum(keys / (2 * _TILE), 1)
    )
    splits = np.where(x["s"] > _TILE, 1, splits)
    waves = blocks * splits / x["units"]
    whole = np.where(x["causal"] > 0, np.maximum(waves, 1), np.ceil(waves))
    compute = np.where(waves <= 1, long / splits, whole * mean / splits)
    compute = compute * x["scale"]
    size = x["read"] + x["written"]
    memory = transfer(c, x, size, hertz)
    time = overlapped(c, compute, memory)
    time = time + np.where(splits > 1, c["merge"], 0) + c["sequence"] * x["b"]
    result: Array = c["t0"] + time
    return result


def features(x: Columns) -> Array:
    """Returns the logarithms of the shape, for the correction of residuals."""
    names = ("b", "s", "t", "h", "kv", "d")
    return np.log2(np.stack([x[n] for n in names], axis=1))
