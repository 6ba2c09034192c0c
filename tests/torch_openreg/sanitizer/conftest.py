# SPDX-License-Identifier: BSD-3-Clause
"""Streams for the tests of the sanitizer, and a check that each test disables it."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
import torch
from torch.openreg import sanitizer
from torch.utils._python_dispatch import (
    _get_current_dispatch_mode,
)

from .programs import DEVICE


@pytest.fixture
def main() -> torch.Stream:
    return torch.accelerator.current_stream()


@pytest.fixture
def side() -> torch.Stream:
    return torch.Stream(DEVICE)


@pytest.fixture(autouse=True)
def cache_is_empty() -> Iterator[None]:
    """Each test allocates from the same state."""
    gc.collect()
    torch.accelerator.empty_cache()
    yield
    assert not sanitizer.is_enabled()
    assert _get_current_dispatch_mode() is None
