# SPDX-License-Identifier: BSD-3-Clause
"""``torch.cuda.set_sync_debug_mode`` reports host waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch.overrides import _get_current_function_mode
from torch.utils._python_dispatch import _get_current_dispatch_mode
from torch.utils.flop_counter import FlopCounterMode

MESSAGE = "called a synchronizing CUDA operation"


@pytest.fixture(autouse=True)
def default_mode() -> Iterator[None]:
    yield
    torch.cuda.set_sync_debug_mode("default")


WAITS: list[Callable[[torch.Tensor], object]] = [
    lambda x: x.sum().item(),
    lambda x: x.nonzero(),
    lambda x: x[x > 0],
    lambda x: x.cpu(),
    lambda x: x.copy_(torch.ones(4)),
    lambda x: bool(x[0]),
    lambda x: repr(x),
    lambda x: torch.cuda.current_stream().synchronize(),
]
NO_WAITS: list[Callable[[torch.Tensor], object]] = [
    lambda x: x + 1,
    lambda x: x.copy_(torch.ones(4).pin_memory(), non_blocking=True),
    lambda x: x.sum(),
    lambda x: torch.zeros(3, device="cuda"),
]


@pytest.mark.parametrize("wait", WAITS)
def test_a_wait_is_refused(wait: Callable[[torch.Tensor], object]) -> None:
    x = torch.ones(4, device="cuda")
    torch.cuda.set_sync_debug_mode("error")
    with pytest.raises(RuntimeError, match=MESSAGE):
        wait(x)
    torch.cuda.set_sync_debug_mode("default")
    wait(x)


@pytest.mark.parametrize("wait", WAITS)
def test_a_wait_issues_a_warning(wait: Callable[[torch.Tensor], object]) -> None:
    x = torch.ones(4, device="cuda")
    torch.cuda.set_sync_debug_mode("warn")
    with pytest.warns(UserWarning, match=MESSAGE):
        wait(x)


@pytest.mark.parametrize("work", NO_WAITS)
def test_work_is_not_refused(work: Callable[[torch.Tensor], object]) -> None:
    x = torch.ones(4, device="cuda")
    torch.cuda.set_sync_debug_mode(2)
    assert torch.cuda.get_sync_debug_mode() == 2
    work(x)


def test_the_line_of_the_program_is_named() -> None:
    x = torch.ones(4, device="cuda")
    torch.cuda.set_sync_debug_mode("error")
    with pytest.raises(RuntimeError, match=r"test_sync_debug.*x\.tolist"):
        x.tolist()


@pytest.mark.parametrize("mode", [3, "loud"])
def test_other_modes_are_refused(mode: int | str) -> None:
    with pytest.raises(RuntimeError, match="debug_mode"):
        torch.cuda.set_sync_debug_mode(mode)


def test_modes_of_with_statements_end_with_them() -> None:
    x = torch.ones(4, device="cuda")
    with FlopCounterMode(display=False) as outer:
        torch.cuda.set_sync_debug_mode("error")
        with pytest.raises(RuntimeError, match=MESSAGE):
            x.sum().item()
    assert outer.get_total_flops() == 0
    with FlopCounterMode(display=False):
        torch.cuda.set_sync_debug_mode("default")
    x.sum().item()
    assert _get_current_dispatch_mode() is None
    assert _get_current_function_mode() is None
