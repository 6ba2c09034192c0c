# SPDX-License-Identifier: BSD-3-Clause
"""What a device in a process of its own does otherwise, on purpose.

A test of something that is different there is marked, and expected to fail with
``OPENREG_ISOLATION=process``::

    @pytest.mark.differs_in_process("messages")

``run=False`` is for one that would leave memory or processes behind where it fails.
docs/isolation.md has the list, whose words these are.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import pytest

DIFFERENCES = {
    "blocks": "The device does not know which blocks of its memory are allocated",
    "functions": "PyTorch's functions for a device, which are no operators",
    "kernels": "Kernels of the program cannot reach the memory",
    "memory check": "`OPENREG_MEMORY_CHECK=1` is refused",
    "messages": "Calls that [do not go through messages]",
    "pace": "Nothing is tried: in bursts small operators are enqueued",
    "shared memory": "Memory is not shared with other processes",
    "sparse gradients": "A sparse gradient has values that are contiguous",
}


def pytest_collection_modifyitems(items: Iterable[pytest.Item]) -> None:
    """Expects the failures of tests that are marked."""
    is_process = os.environ.get("OPENREG_ISOLATION") == "process"
    for item in items:
        for marker in item.iter_markers("differs_in_process"):
            (difference,) = marker.args
            reason = f"docs/isolation.md: {DIFFERENCES[difference]}"
            if is_process:
                xfail = pytest.mark.xfail(strict=True, reason=reason, **marker.kwargs)
                item.add_marker(xfail)
