# SPDX-License-Identifier: BSD-3-Clause
"""Settings of the program that the CPU's kernels read, and long lists of tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F


@contextmanager
def deterministic(*, warn_only: bool = False) -> Iterator[None]:
    torch.use_deterministic_algorithms(True, warn_only=warn_only)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


def put(x: Tensor) -> Tensor:
    """Calls an operator that claims to be nondeterministic on any device."""
    index = torch.zeros(2, dtype=torch.int64, device=x.device)
    return x.put_(index, torch.ones(2, device=x.device))


@pytest.mark.parametrize("size", [3, 1 << 20])
def test_nondeterministic_operator_is_refused_by_its_call(
    device: str, size: int
) -> None:
    x = torch.zeros(size, device=device)
    put(x)  # caches the metadata of its result
    x.zero_()
    torch.accelerator.synchronize()  # a kernel sees the setting when it runs
    with deterministic():
        for _ in range(2):
            with pytest.raises(RuntimeError, match="put_ does not have a determ"):
                put(x)
    torch.accelerator.synchronize()
    assert x.sum().item() == 0
    assert put(x)[0].item() == 1


def test_nondeterministic_operator_warns(device: str) -> None:
    x = torch.zeros(3, device=device)
    with deterministic(warn_only=True), pytest.warns(match="put_ .*warn_only=True"):
        put(x).tolist()


@pytest.mark.filterwarnings("ignore:.*does not have a deterministic")
def test_operator_that_warned_is_refused_by_its_call_afterwards(device: str) -> None:
    x = torch.rand(1, 1, 1024, 1024)
    pooled, index = (
        each.to(device) for each in F.max_pool2d(x, 2, return_indices=True)
    )
    with deterministic(warn_only=True):
        for _ in range(2):  # the second call uses the cached metadata of its result
            F.max_unpool2d(pooled, index, 2)
    torch.accelerator.synchronize()
    with deterministic(), pytest.raises(RuntimeError, match="not have a determ"):
        F.max_unpool2d(pooled, index, 2)
    torch.accelerator.synchronize()


@pytest.mark.filterwarnings("ignore:TF32 acceleration")
@pytest.mark.parametrize("enabled", [False, True])
def test_kernels_use_onednn_if_the_program_does(
    device: str, same: Callable[[Any, Any], None], enabled: bool
) -> None:
    x, weight = torch.randn(4, 16, 20, 20), torch.randn(32, 16, 3, 3)
    with torch.backends.mkldnn.flags(enabled=enabled):
        y = F.conv2d(x.to(device), weight.to(device))
        torch.accelerator.synchronize()
        same(y, F.conv2d(x, weight))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: torch.repeat_interleave(x + (1 << 40)),
        lambda x: torch.bincount(x + (1 << 45)),
    ],
)
def test_result_that_no_memory_can_hold_is_out_of_memory(
    device: str, call: Callable[[Tensor], Tensor]
) -> None:
    with pytest.raises(torch.OutOfMemoryError, match="Tried to allocate"):
        call(torch.zeros(1, dtype=torch.int64, device=device))


def lists(device: str) -> list[Tensor]:
    """Views of a few storages, some of them the same tensor."""
    parts = [*torch.arange(60.0, device=device).view(20, 3).unbind()]
    others = [torch.full((3,), float(each), device=device) for each in range(30)]
    return parts + others + parts[:7] + [each[1:] for each in others]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: torch.cat(x),
        lambda x: torch._foreach_add(x, x),
        lambda x: torch._foreach_mul_(x, 2.0),
        lambda x: torch._foreach_copy_(x[:20], x[20:40]),
    ],
)
def test_long_lists_know_which_tensors_share_memory(
    device: str, same: Callable[[Any, Any], None], call: Callable[[list[Tensor]], Any]
) -> None:
    ours, theirs = lists(device), lists("cpu")
    same(call(ours), call(theirs))
    same(ours, theirs)
