# SPDX-License-Identifier: BSD-3-Clause
"""The package's environment variables, which the runtime reads and checks."""

from __future__ import annotations

import openreg_runtime

openreg_runtime.register_setting(
    "OPENREG_FLIGHT_RECORDS",
    "2000",
    "number",
    "how many collectives and messages the flight record of a rank keeps",
)
openreg_runtime.register_setting(
    "OPENREG_FLIGHT_STACKS",
    "1",
    "switch",
    "1 keeps the Python stack of each of them",
)
openreg_runtime.register_setting(
    "OPENREG_FLIGHT_FILES",
    "1",
    "switch",
    "1 writes the flight record to a file when a collective fails",
)
