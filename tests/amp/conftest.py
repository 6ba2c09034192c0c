# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the autocast tests."""

from __future__ import annotations

import pytest

import openreg_aten  # noqa: F401  the backend comes before openreg_amp


@pytest.fixture
def device():
    """The device of openreg-aten, under its default name."""
    return "privateuseone"
