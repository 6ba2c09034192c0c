# SPDX-License-Identifier: BSD-3-Clause
"""Tests that fail for a reason that expected_failures.toml gives, and no others."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest

from distributed.upstream.expected_failures import expected_failures

# How many ranks there are, each with a device. The import below counts the devices.
RANKS = os.environ.setdefault("UPSTREAM_RANKS", "2")
os.environ["OPENREG_DEVICE_COUNT"] = RANKS

with warnings.catch_warnings(action="ignore"):  # of what is not installed
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
