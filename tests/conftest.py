# SPDX-License-Identifier: BSD-3-Clause
"""Loads the fixtures that all tests have."""

import os
from importlib.util import find_spec

pytest_plugins = [
    "support.isolation",
    "support.latches",
    "support.programs",
    "support.small_operators",
]

if find_spec("openreg_aten"):
    # Tests of float16 and bfloat16 compare bits with the CPU's. Those of the default
    # compare with float64, in programs of their own.
    os.environ.setdefault("OPENREG_HALF_IN_FLOAT32", "0")
    # The tests compare with the CPU, which runs more than CUDA. Those of the limits
    # start programs of their own.
    os.environ["OPENREG_CUDA_LIMITS"] = "0"
