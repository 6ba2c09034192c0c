# SPDX-License-Identifier: BSD-3-Clause
"""The intended differences of a device in a separate process.

A test of such a difference is marked, and expected to fail with
``OPENREG_ISOLATION=process``::

    @pytest.mark.differs_in_process("messages")

``run=False`` is for tests that would leave memory or processes behind when they fail,
and ``marked`` for single parameters of a test. The texts are from the list in
docs/isolation.md.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

DIFFERENCES = {
    "blocks": "The device does not track the allocated blocks of its memory",
    "allocations": "Memory that a kernel allocates belongs to the device process",
    "functions": "PyTorch's device functions that are not operators",
    "graphs": "`torch.accelerator.Graph` cannot be captured",
    "inductor": "Kernels that Inductor writes cannot reach the memory",
    "kernels": "Kernels of the program cannot reach the memory",
    "memory check": "`OPENREG_MEMORY_CHECK=1` is refused",
    "messages": "Calls that [do not go through messages]",
    "occl": "`init_process_group` raises a `RuntimeError`",
    "operators": "Operators that Python or another library registers for the CPU",
    "pace": "Bursts of small operators are always enqueued, without a trial",
    "random numbers": "A random number generator has a twin on the device",
    "shared memory": "Memory is not shared with other processes",
    "uninitialized": "as is `OPENREG_UNINITIALIZED=nan`",
    "sparse gradients": "A sparse gradient has values that are contiguous",
}


def marked(
    values: Iterable[T],
    differences: Mapping[str, str],
    name: Callable[[T], str] = str,
    **options: Any,
) -> list[Any]:
    """Yields the values of a parameter, with marks for the names in ``differences``."""
    return [
        pytest.param(
            value,
            marks=pytest.mark.differs_in_process(differences[name(value)], **options),
        )
        if name(value) in differences
        else value
        for value in values
    ]


def pytest_collection_modifyitems(items: Iterable[pytest.Item]) -> None:
    """Adds expected failures to the marked tests."""
    is_process = os.environ.get("OPENREG_ISOLATION") == "process"
    for item in items:
        for marker in item.iter_markers("differs_in_process"):
            (difference,) = marker.args
            reason = f"docs/isolation.md: {DIFFERENCES[difference]}"
            if is_process:
                xfail = pytest.mark.xfail(strict=True, reason=reason, **marker.kwargs)
                item.add_marker(xfail)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Frees the memory of expected failures, which later tests would count."""
    report = yield
    if call.excinfo is not None and hasattr(report, "wasxfail"):
        call.excinfo = None
        for name in ("last_type", "last_value", "last_exc", "last_traceback"):
            vars(sys).pop(name, None)
        gc.collect()  # a traceback and its frames refer to each other
    return report
