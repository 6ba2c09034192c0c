# SPDX-License-Identifier: BSD-3-Clause
"""Checks that the runtime's tests leave no resources in their process."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator

import pytest

import openreg_runtime as runtime


@pytest.fixture(autouse=True)
def no_leak() -> Iterator[None]:
    """Fails a test that changes the resources of the process.

    There may be fewer threads, because idle workers end.
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
        # A stream's last objects and its worker are released shortly after its work.
        for index in range(runtime.device_count()):
            runtime.synchronize(index)
    assert is_as_before(), (before, runtime.resource_usage())
