# SPDX-License-Identifier: BSD-3-Clause
"""The next wait names a failed enqueued operator, and its memory is freed."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import openreg_runtime as runtime
from support.latches import Latches
from support.programs import Program


def test_memory_of_enqueued_operators_is_freed_after_an_exception(
    device: str, latch: Latches
) -> None:
    x = torch.ones(1000, device=device)
    (x * 2 + 1).sum()
    torch.accelerator.synchronize()
    gc.collect()
    before = torch.accelerator.memory_allocated()
    held = latch()

    def compute() -> None:
        y = x * 2
        z = y + 1
        raise ValueError(z.shape)

    with pytest.raises(ValueError, match="1000"):
        compute()
    gc.collect()
    assert held.holds
    assert torch.accelerator.memory_allocated() == before
    later = x * 2 + 1  # in memory that the exception has released
    held.release()
    assert later.eq(3).all()


def query_until_idle() -> None:
    while not torch.accelerator.current_stream().query():
        pass


WAITS: dict[str, Callable[[Tensor], object]] = {
    "device": lambda x: torch.accelerator.synchronize(),
    "module": lambda x: torch.openreg.synchronize(0),
    "stream": lambda x: torch.accelerator.current_stream().synchronize(),
    "query": lambda x: query_until_idle(),
    "item": lambda x: x.sum().item(),
    "copy to the host": lambda x: x.cpu(),
    "list": lambda x: x.tolist(),
    "condition": lambda x: bool(x[0] == 1),
    "text": repr,
}


@pytest.fixture
def failing() -> Callable[..., None]:
    """Returns a function that enqueues an operator whose kernel fails.

    After a failure, calls with the same metadata run inline, so that they raise the
    error themselves. Two failures in one test need different `columns`.
    """

    def fail(device: str, columns: int = 2) -> None:
        weight = torch.ones(4, columns, device=device)
        good = torch.tensor([0, 3]).to(device)
        F.embedding(good, weight)
        bad = torch.tensor([0, 9]).to(device)
        torch.accelerator.synchronize(device)
        index = torch.device(device).index or 0
        gate = threading.Event()
        handle = torch.accelerator.current_stream(index).native_handle
        runtime.Stream.from_handle(handle).launch(gate.wait, 30)
        F.embedding(bad, weight)  # no error yet
        gate.set()

    return fail


@pytest.mark.parametrize("name", WAITS)
def test_failed_operator_is_named_by_the_next_wait_and_forgotten(
    device: str, failing: Callable[..., None], name: str
) -> None:
    x = torch.ones(3, device=device)
    WAITS[name](x)
    failing(device)
    with pytest.raises(RuntimeError, match=r"aten::embedding: .*out of range"):
        WAITS[name](x)
    if name == "query":  # queries without consuming the error
        with pytest.raises(RuntimeError, match=r"aten::embedding: .*out of range"):
            torch.accelerator.synchronize()
    WAITS[name](x)
    assert (x + 1).tolist() == [2, 2, 2]


def test_failed_operator_of_another_device_or_stream_is_reported_there(
    device: str, failing: Callable[..., None]
) -> None:
    side = torch.Stream(device)
    with side:
        failing(device)
    failing(f"{device}:1", columns=3)
    torch.accelerator.current_stream(0).synchronize()
    for wait in (side.synchronize, lambda: torch.accelerator.synchronize(1)):
        with pytest.raises(RuntimeError, match=r"aten::embedding: .*out of range"):
            wait()
    torch.accelerator.synchronize(0)
    torch.accelerator.synchronize(1)


def test_failed_operator_of_a_backward_pass_is_named(
    device: str, latch: Latches
) -> None:
    class Lookup(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, indices: Tensor) -> Tensor:
            ctx.save_for_backward(indices)
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
            (indices,) = ctx.saved_tensors
            return F.embedding(indices, gradient), None

    good, bad = (torch.tensor(i).to(device) for i in ([0, 1], [0, 5]))
    x = torch.ones(2, 3, device=device, requires_grad=True)
    torch.autograd.grad(Lookup.apply(x, good).sum(), x)
    torch.accelerator.synchronize()
    held = latch()
    torch.autograd.grad(Lookup.apply(x, bad).sum(), x)
    assert held.holds
    held.release()
    with pytest.raises(RuntimeError, match=r"aten::embedding: .*out of range"):
        torch.accelerator.synchronize()


def test_failed_operator_is_an_error_of_the_call_with_launch_blocking(
    fork_script: Program,
) -> None:
    result = fork_script(
        """
        import torch
        weight = torch.ones(500, 500, device="openreg")
        good, bad = (torch.tensor([i]).to("openreg") for i in (0, 500))
        torch.nn.functional.embedding(good, weight)
        torch.nn.functional.embedding(bad, weight)  # this line
        torch.openreg.synchronize()
        """,
        OPENREG_LAUNCH_BLOCKING="1",
        OPENREG_INLINE_BYTES="0",
    )
    assert result.returncode == 1
    assert "# this line" in result.stderr
    assert "synchronize()" not in result.stderr
    assert result.stderr.rstrip().endswith("IndexError: index out of range in self")
