# SPDX-License-Identifier: BSD-3-Clause
"""The runtime's tests leave nothing behind in their process."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator

import pytest

import openreg_runtime as runtime


@pytest.fixture(autouse=True)
def no_leak() -> Iterator[None]:
    """Fails a test after which the process holds more or less than before.

    Threads may be fewer: the worker of a stream ends when it is idle for a while.
    """
    before = runtime.resource_usage()

    def is_as_before() -> bool:
        now = runtime.resource_usage()
        return now.threads <= max(before.threads, runtime.device_count()) and (
            now._replace(threads=before.threads) == before
        )

    yield
    gc.collect()
    deadline = time.monotonic() + 10
    while not is_as_before() and time.monotonic() < deadline:
        # A stream's last objects and its worker end shortly after its work.
        for index in range(runtime.device_count()):
            runtime.synchronize(index)
    assert is_as_before(), (before, runtime.resource_usage())
