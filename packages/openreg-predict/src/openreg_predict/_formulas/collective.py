# SPDX-License-Identifier: BSD-3-Clause
"""Collectives: a start, steps of a latency each, and the bytes that a device sends.

Within the domain of a link its bandwidth counts, beyond it that of the network. Large
messages reach the bandwidth, small ones are bound by steps.
"""

from __future__ import annotations

import numpy as np

from openreg_predict._formulas.columns import Array, Columns, Constants

START: Constants = {
    "t0": 6e-6,  # s, start and end
    "step": 0.7e-6,  # s, for each further device within a host
    "far_step": 5e-6,  # s, for each further host
    "bandwidth": 0.8,  # of the link, with 8 devices
    "lonely": 0.2,  # power of (devices / 8): few devices use fewer channels
    "ramp": 3e6,  # bytes at which half of the bandwidth is reached
    "reduce": 1.1,  # factor of the time of bytes for reductions
    "far": 0.8,  # of the network's bandwidth
    "small": 2e10,  # bytes/s of small messages, sent with flags
    "switch": 2e6,  # bytes at which the protocol changes
}


def seconds(c: Constants, x: Columns) -> Array:
    """Returns the time of each collective.

    Args:
        c: The constants.
        x: Columns ``devices``, ``sent`` (bytes that a device sends in a ring),
            ``reduces`` (1 for reductions), ``rounds`` (2 for all_reduce) and
            the columns of the device.
    """
    n, sent = x["devices"], x["sent"]
    inside = np.minimum(n, x["domain"])
    hosts = n / inside
    near = c["bandwidth"] * x["link"] * (inside / 8) ** c["lonely"]
    large = sent / near + c["ramp"] / near * sent / (sent + c["ramp"])
    small = sent / c["small"]
    large = large * (1 + (c["reduce"] - 1) * x["reduces"])
    wire = np.where(sent < c["switch"], np.minimum(small, large), large)
    far = np.where(hosts > 1, sent / (c["far"] * np.maximum(x["network"], 1)), 0)
    steps = (
        x["rounds"] * (inside - 1) * c["step"]
        + (hosts > 1) * np.log2(np.maximum(hosts, 1)) * c["far_step"]
    )
    result: Array = c["t0"] + steps + np.maximum(wire, far)
    return result


def features(x: Columns) -> Array:
    """Returns the logarithms of the shape, for the correction of residuals."""
    shape = np.stack([x["devices"], x["sent"]], axis=1)
    kinds = np.stack(
        [8 * x["reduces"], 8 * (x["rounds"] > 1), 8 * x["exchange"]], axis=1
    )
    return np.concatenate([np.log2(shape), kinds], axis=1)
