# SPDX-License-Identifier: BSD-3-Clause
"""The page of half_in_float32 names the operators of the table of facts."""

from __future__ import annotations

import re

from support.programs import ROOT

SOURCE = ROOT / "packages/openreg-aten/csrc/facts/operators.cpp"
PAGE = ROOT / "docs/mechanisms/half_in_float32.md"
DTYPES = ("kHalf | kBFloat16", "kHalf | kBFloat16Unaided", "kHalf")  # in its order


def test_page_lists_the_operators_that_compute_in_float32() -> None:
    rows = re.findall(
        r'\{"(\w+)::(\w+)",[^,}]+,[^,}]+,\s*(kHalf[^}]*)\}', SOURCE.read_text()
    )
    text = PAGE.read_text().split("These operators compute in float32")[1]
    parts = text.split("\n\nIn float16")
    listed = {
        name: dtypes
        for part, dtypes in zip(parts, DTYPES, strict=False)
        for name in re.findall(r"`(\w+)`", part.split("\n\n")[1])
    }
    assert listed == {
        name: " ".join(dtypes.split())
        for space, name, dtypes in rows
        if space == "aten"
    }
