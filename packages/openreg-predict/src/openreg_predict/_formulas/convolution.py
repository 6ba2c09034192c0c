# SPDX-License-Identifier: BSD-3-Clause
"""Convolutions as matrix products whose operand is gathered, and Winograd's transform.

The forward pass multiplies (images and positions) by (channels out) over (channels in
and taps); the gradient of the input swaps the channels, and that of the weight sums
over images and positions. Depthwise convolutions are bound by bytes.
"""

from __future__ import annotations

import numpy as np

from openreg_predict._formulas import gemm
from openreg_predict._formulas.columns import Array, Columns, Constants

START: Constants = {
    **gemm.START,
    "efficiency": 0.75,
    "winograd": 0.6,  # share of the time that a transform of 3 x 3 taps saves at most
    "strided": 0.3,  # for each factor of 2 of the stride, in the gradient of the input
    "taps": 0.05,  # for each factor of 2 of taps: index arithmetic
    "thin": 0.3,  # for each factor of 2 of channels in below 16
    "weight": 0.2,  # more time, for the gradient of the weight
    "input": 0.1,  # more time, for the gradient of the input
    "measured": 1e-6,  # s, of a harness that waits for each call
}


def seconds(c: Constants, x: Columns) -> Array:
    """Returns the time of each convolution.

    Args:
        c: The constants.
        x: Columns ``n``, ``c``, ``h``, ``w``, ``k``, ``r``, ``s``, ``p``, ``q``,
            ``sh``, ``sw``, ``g``, ``input``, ``weight`` (1 in these passes) and those
            of works and devices.
    """
    forward = 1 - x["input"] - x["weight"]
    inner, outer = x["c"] / x["g"], x["k"] / x["g"]
    taps = x["r"] * x["s"]
    out, image = x["n"] * x["p"] * x["q"], x["n"] * x["h"] * x["w"]
    y = dict(x)
    y["b"] = x["g"]
    y["m"] = forward * out + x["input"] * image + x["weight"] * outer
    y["n"] = forward * outer + x["input"] * inner + x["weight"] * inner * taps
    depth = outer * taps / (x["sh"] * x["sw"])
    y["k"] = forward * inner * taps + x["input"] * depth + x["weight"] * out
    base = gemm.seconds(c, y) - c["t0"]
    three = (x["r"] == 3) & (x["s"] == 3) & (x["sh"] * x["sw"] == 1) & (x["g"] == 1)
    worth = np.minimum(inner, outer) / (np.minimum(inner, outer) + 32)
    saved = np.where(three, c["winograd"] * worth / (1 + c["winograd"] * worth), 0)
    stride = np.log2(x["sh"] * x["sw"]) * x["input"]
    thin = np.clip(np.log2(16 / inner), 0, 4)
    factor = (1 - saved) * (1 + c["strided"] * stride) * (1 + c["thin"] * thin)
    factor = factor * (1 + c["taps"] * np.log2(taps))
    factor = factor * (1 + c["weight"] * x["weight"] + c["input"] * x["input"])
    result: Array = c["t0"] + c["measured"] * x["host_timed"] + base * factor
    return result


def features(x: Columns) -> Array:
    """Returns the logarithms of the shape, for the correction of residuals."""
    positions = x["p"] * x["q"]
    stride = x["sh"] * x["sw"]
    inner = x["c"] / x["g"]
    shape = np.stack(
        [x["n"], inner, x["k"], positions, x["r"] * x["s"], stride], axis=1
    )
    passes = np.stack([4 * x["input"], 4 * x["weight"]], axis=1)
    return np.concatenate([np.log2(shape), passes], axis=1)
