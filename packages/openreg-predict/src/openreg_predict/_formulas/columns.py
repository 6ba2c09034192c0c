# SPDX-License-Identifier: BSD-3-Clause
"""Works and devices as columns of numbers, so that many are costed together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from openreg_predict._devices.description import DescribedDevice
from openreg_predict._devices.hardware import hardware, matrix_rate
from openreg_predict._works.work import SIZES, Work

Array = npt.NDArray[np.float64]
Columns = dict[str, Array]
Constants = dict[str, float]

_HARDWARE = (
    "vector", "bandwidth", "l2", "units", "clock", "power", "node", "vector_node",
    "link", "network", "domain", "pcie",
)  # fmt: skip
# Constants of the power limit, which are set and not fitted: the highest rates of the
# A100, V100 and H200 in training rows agree with them. J per operation and nm, and the
# exponent of (power available / power needed).
POWER: Constants = {"energy": 0.23e-12, "vector_energy": 2.1e-12, "throttle": 0.4}
# The highest share of a peak, or of the memory's bandwidth, that a kernel can reach.
MOST = 0.97
# Of the board's power, what the units get under load.
BOARD_SHARE = 0.85


def columns(
    works: Sequence[Work], devices: Sequence[DescribedDevice], facts: Sequence[str]
) -> Columns:
    """Returns the columns of works on devices, row by row.

    Args:
        works: The works.
        devices: The device of each work.
        facts: The facts that the model reads; a missing one is 1.
    """
    rows = [hardware(d) for d in devices]
    rates = [
        matrix_rate(d, w.dtype.split(">")[0])
        for w, d in zip(works, devices, strict=True)
    ]

    def array(values: Sequence[float]) -> Array:
        return np.array(values, dtype=np.float64)

    result = {
        name: array([float(w.facts.get(name, 1)) for w in works]) for name in facts
    }
    result |= {
        "flops": array([w.flops for w in works]),
        "read": array([w.read for w in works]),
        "written": array([w.written for w in works]),
        "size": array([SIZES[w.dtype.split(">")[0]] for w in works]),
        "rate": array([r[0] for r in rates]),
        "matrix": array([float(r[1]) for r in rates]),
    }
    for name in _HARDWARE:
        result[name] = array([getattr(row, name) for row in rows])
    return result


def clock_share(c: Constants, x: Columns) -> Array:
    """Returns the share of the clock that the power limit permits under full load.

    Args:
        c: The constants, of which ``energy`` is J per operation and nm of the process,
            for matrix units, and ``vector_energy`` for vector units.
        x: The columns of the device.
    """
    matrix = c["energy"] * x["node"]
    vector = c["vector_energy"] * x["vector_node"]
    matrix = matrix * x["size"] / 2  # a multiplier grows with its operands
    needed = np.where(x["matrix"] > 0, matrix, vector) * x["rate"]
    share: Array = np.minimum(1, (BOARD_SHARE * x["power"] / needed) ** c["throttle"])
    return share


def power_needed(device: DescribedDevice, dtype: str) -> float:
    """Returns the power in W that matrix products need at the full clock."""
    rate, matrix = matrix_rate(device, dtype)
    row = hardware(device)
    if matrix:
        return POWER["energy"] * row.node * SIZES[dtype] / 2 * rate
    return POWER["vector_energy"] * row.vector_node * rate
