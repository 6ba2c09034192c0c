# SPDX-License-Identifier: BSD-3-Clause
"""torch.openreg.operator_paths: counts of the dispatch paths."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture(autouse=True)
def inline() -> None:
    """Makes the next small operators run inline, independent of earlier tests."""
    torch.openreg.synchronize()
    x = torch.ones(2, device="openreg")
    for _ in range(400):  # the mean of the operands' bytes falls below the limit
        x.neg()
    torch.openreg.synchronize()


def test_block_counts_only_its_calls() -> None:
    x = torch.ones(2, 2, device="openreg")
    with torch.openreg.operator_paths() as paths:
        x @ x
        x @ x
        x.exp()
    x.exp()
    assert paths.calls == {
        ("aten::mm", "typed"): 2,
        ("aten::exp", "structured"): 1,
    }
    assert str(paths).splitlines()[0].split() == ["2", "typed", "aten::mm"]


def test_blocks_may_be_nested() -> None:
    x = torch.ones(2, device="openreg")
    with torch.openreg.operator_paths() as outer:
        x.exp()
        with torch.openreg.operator_paths() as inner:
            x.exp()
        x.exp()
    assert inner.calls["aten::exp", "structured"] == 1
    assert outer.calls["aten::exp", "structured"] == 3


def test_block_that_fails_stops_counting() -> None:
    x = torch.ones(2, device="openreg")
    a = torch.openreg.operator_paths()
    with pytest.raises(RuntimeError), a:
        x.exp().view(7)
    with torch.openreg.operator_paths() as b:
        pass
    assert a.calls["aten::exp", "structured"] == 1
    assert not b.calls


def test_backward_pass_is_counted() -> None:
    x = torch.ones(2, 2, device="openreg", requires_grad=True)
    y = (x @ x).tanh().sum()
    with torch.openreg.operator_paths() as paths:
        y.backward()
    assert paths.calls["aten::mm", "typed"] == 2
    assert paths.calls["aten::tanh_backward", "structured"] == 1
