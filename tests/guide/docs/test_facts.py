# SPDX-License-Identifier: BSD-3-Clause
"""The page of half_in_float32 names the operators of the table of facts."""

from __future__ import annotations

import re

from support.programs import ROOT

SOURCE = ROOT / "packages/openreg-aten/csrc/facts/operators.cpp"
PAGE = ROOT / "docs/mechanisms/half_in_float32.md"


def test_page_lists_the_operators_that_compute_in_float32() -> None:
    rows = re.findall(
        r'\{"(\w+)::(\w+)",[^,}]+,[^,}]+,\s*(kHalf[^}]*)\}', SOURCE.read_text()
    )
    both, half = PAGE.read_text().split("with all overloads")[1].split("float16 alone:")
    listed = dict.fromkeys(re.findall(r"`(\w+)`", both), "kHalf | kBFloat16")
    listed |= dict.fromkeys(re.findall(r"`(\w+)`", half.split("\n\n")[0]), "kHalf")
    assert listed == {
        name: " ".join(dtypes.split())
        for space, name, dtypes in rows
        if space == "aten"
    }
