# SPDX-License-Identifier: BSD-3-Clause
"""The suites: each module here has a function ``cases(level)``."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence

from openreg_conformance.case import Case

# In the order in which they are run: what others stand on comes first.
SUITES = (
    "device",
    "memory",
    "streams",
    "rng",
    "operators",
    "modules",
    "optimizers",
    "semantics",
    "autocast",
    "serialization",
    "data_loading",
    "multiprocessing",
    "distributed",
    "compile",
    "profiler",
)
# If one of these fails nothing else can pass.
FOUNDATIONS = (
    "device/tensor_can_be_made",
    "device/copy_to_the_device_and_back",
)


def cases(suites: Sequence[str], level: str) -> Iterator[Case]:
    """Lists the cases of some suites at a level, in the order of ``SUITES``."""
    for name in SUITES:
        if name in suites:
            module = importlib.import_module(f"{__name__}.{name}")
            yield from module.cases(level)
