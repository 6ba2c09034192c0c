# SPDX-License-Identifier: BSD-3-Clause
"""The marker ``whole``."""

from __future__ import annotations

import pytest
import torch

# Set before the first backward pass, because the device's autograd thread keeps the
# number from its start. With one thread a kernel always sums in the same order.
torch.set_num_threads(1)


def is_whole(config: pytest.Config) -> bool:
    """Returns whether ``-m whole`` selects everything."""
    return bool(config.getoption("markexpr") == "whole")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Marks tests of every sample, instead of a few."""
    if is_whole(config):
        for item in items:
            item.add_marker("whole")


@pytest.fixture
def whole(request: pytest.FixtureRequest) -> bool:
    """Whether everything is tested."""
    return is_whole(request.config)
