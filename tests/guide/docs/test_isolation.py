# SPDX-License-Identifier: BSD-3-Clause
"""The guide's list of differences of process mode."""

from __future__ import annotations

import pytest

from support.isolation import DIFFERENCES
from support.programs import ROOT

GUIDE = ROOT / "docs" / "isolation.md"


@pytest.mark.parametrize("difference", DIFFERENCES)
def test_expected_failures_are_in_the_list(difference: str) -> None:
    text = GUIDE.read_text().partition("### Differences")[2]
    listed = " ".join(text.partition("\n## ")[0].split()).lower()
    assert DIFFERENCES[difference].lower() in listed
