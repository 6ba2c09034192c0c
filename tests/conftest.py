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
    # Tests of float16 and bfloat16 compare bitwise with the CPU. Tests of the default
    # compare with float64, in separate programs.
    os.environ.setdefault("OPENREG_HALF_IN_FLOAT32", "0")
    # The tests compare with the CPU, which supports more than CUDA. Tests of the limits
    # start separate programs.
    os.environ["OPENREG_CUDA_LIMITS"] = "0"
