# SPDX-License-Identifier: BSD-3-Clause
"""torch.openreg.operator_paths: counts of the dispatch paths."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

from support.programs import Program

INLINE = """
import torch

x = torch.ones(2, 2, device="openreg")
torch.openreg.synchronize()
with torch.openreg.operator_paths() as paths:
    x @ x
    x @ x
    x.exp()
x.exp()
print(sorted(paths.calls.items()))
print(str(paths).splitlines()[0].split())
"""


def operators(paths: torch.openreg.operator_paths) -> Counter[str]:
    """Counts calls by operator.

    The paths depend on the load of the machine: the operators are small, and the device
    enqueues small operators on a busy stream or when this was faster.
    """
    counts: Counter[str] = Counter()
    for (name, path), count in paths.calls.items():
        counts[name] += count if path != "corrected" else 0
    return counts


def test_operators_that_run_inline_are_counted_by_their_path(
    run_script: Program,
) -> None:
    shown = run_script(INLINE, OPENREG_ENQUEUE_BURSTS="0", OPENREG_ISOLATION="thread")
    assert shown.stdout.splitlines() == [
        "[(('aten::exp', 'structured'), 1), (('aten::mm', 'typed'), 2)]",
        "['2', 'typed', 'aten::mm']",
    ], shown.stderr


def test_block_counts_only_its_calls() -> None:
    x = torch.ones(2, 2, device="openreg")
    with torch.openreg.operator_paths() as paths:
        x @ x
        x @ x
        x.exp()
    x.exp()
    assert operators(paths) == {"aten::mm": 2, "aten::exp": 1}


def test_blocks_may_be_nested() -> None:
    x = torch.ones(2, device="openreg")
    with torch.openreg.operator_paths() as outer:
        x.exp()
        with torch.openreg.operator_paths() as inner:
            x.exp()
        x.exp()
    assert operators(inner) == {"aten::exp": 1}
    assert operators(outer) == {"aten::exp": 3}


def test_block_that_fails_stops_counting() -> None:
    x = torch.ones(2, device="openreg")
    a = torch.openreg.operator_paths()
    with pytest.raises(RuntimeError), a:
        x.exp().view(7)
    with torch.openreg.operator_paths() as b:
        pass
    assert operators(a) == {"aten::exp": 1}
    assert not b.calls


def test_backward_pass_is_counted() -> None:
    x = torch.ones(2, 2, device="openreg", requires_grad=True)
    y = (x @ x).tanh().sum()
    with torch.openreg.operator_paths() as paths:
        y.backward()
    counts = operators(paths)
    assert counts["aten::mm"] == 2
    assert counts["aten::tanh_backward"] == 1
