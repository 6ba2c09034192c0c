# SPDX-License-Identifier: BSD-3-Clause
"""Exactly the tests in expected_failures.toml are expected to fail."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest

from distributed.upstream.expected_failures import expected_failures

# Number of ranks, each with a device. The import below counts the devices.
RANKS = os.environ.setdefault("UPSTREAM_RANKS", "2")
os.environ["OPENREG_DEVICE_COUNT"] = RANKS

with warnings.catch_warnings(action="ignore"):  # about missing packages
    import torch.testing._internal.common_distributed  # noqa: F401


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    expected = expected_failures()
    for item in items:
        if item.path.parent == Path(__file__).parent and item.name in expected:
            cause = expected[item.name]
            run = cause.get("run", True)
            item.add_marker(
                pytest.mark.xfail(reason=cause["reason"], run=run, strict=True)
            )
