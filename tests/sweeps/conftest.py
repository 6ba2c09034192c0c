# SPDX-License-Identifier: BSD-3-Clause
"""The marker ``whole``."""

from __future__ import annotations

import pytest
import torch

# Before the first backward pass: the device's autograd thread keeps the number that
# holds when it starts. With one thread a kernel sums in one order.
torch.set_num_threads(1)


def is_whole(config: pytest.Config) -> bool:
    """Whether ``-m whole`` asks for everything."""
    return bool(config.getoption("markexpr") == "whole")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Marks tests that take every sample, instead of a few."""
    if is_whole(config):
        for item in items:
            item.add_marker("whole")


@pytest.fixture
def whole(request: pytest.FixtureRequest) -> bool:
    """Whether everything is tested."""
    return is_whole(request.config)
