# SPDX-License-Identifier: BSD-3-Clause
"""The table of operators that wait on CUDA is valid, and the guide shows it."""

from __future__ import annotations

import pytest
import torch

from support.programs import ROOT
from support.versions import TORCH
from torch_openreg._facts.cuda_waits import RULES

_DOCS = ROOT / "docs" / "host_waits.md"
_TAGS = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}
# Composed of other operators, or their result's shape does not depend on data on CUDA.
_PARTS = {"aten::item", "aten::argwhere", "aten::one_hot"}


# Operators that a supported torch no longer has.
_REMOVED = {"aten::cholesky"} if TORCH >= (2, 14) else set[str]()


@pytest.mark.parametrize("name", [name for name in RULES if name not in _REMOVED])
def test_rule_names_an_operator_of_pytorch(name: str) -> None:
    operator, _, overload = name.removeprefix("aten::").partition(".")
    packet = getattr(torch.ops.aten, operator)
    assert not overload or overload in packet.overloads()


def test_every_operator_whose_result_depends_on_data_has_a_rule() -> None:
    tagged = set()
    for name in torch._C._dispatch_get_all_op_names():
        if not name.startswith("aten::"):
            continue
        operator, _, overload = name.removeprefix("aten::").partition(".")
        func = getattr(getattr(torch.ops.aten, operator), overload or "default")
        if _TAGS & set(func.tags):
            tagged.add(func._schema.name)
    known = {name.partition(".")[0] for name in RULES}
    assert tagged - _PARTS <= known


def test_guide_shows_the_table() -> None:
    shown = _DOCS.read_text().splitlines()
    for name, rule in RULES.items():
        row = f"| `{name.removeprefix('aten::')}` | {rule.summary} | `{rule.source}` |"
        assert row in shown
