# SPDX-License-Identifier: BSD-3-Clause
"""The checks of one optimizer of PyTorch's database."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.testing._internal.common_optimizers import (
    ErrorOptimizerInput,
    OptimizerErrorEnum,
    OptimizerInfo,
    optim_db,
)

from .agreement import check_refusal
from .mirrors import mirror
from .tally import Tally, attempt, quiet

DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.complex64)
STEPS = 4
SHAPES = [(3, 4), (4,), (2, 2, 5), ()]


def configurations(info: OptimizerInfo) -> Iterator[dict[str, Any]]:
    """Yields the database's options with every available implementation.

    By default PyTorch uses foreach on a device and a loop on the CPU, which round
    differently.
    """
    chosen = {each: False for each in ("foreach",) if each in info.supported_impls}
    with quiet():
        inputs = info.optim_inputs_func("cpu")
    for sample in inputs:
        yield {**chosen, **sample.kwargs}
        for each in info.supported_impls:
            if each != "fused" or "cpu" in info.supports_fused_on:
                yield {**sample.kwargs, each: True}


def parameters(info: OptimizerInfo, dtype: torch.dtype) -> list[Tensor]:
    """Creates parameters on the CPU; Muon accepts only matrices."""
    torch.manual_seed(0)
    shapes = [(3, 4), (5, 2)] if info.name == "Muon" else SHAPES
    return [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]


def train(
    info: OptimizerInfo, start: list[Tensor], options: dict[str, Any], device: str
) -> Any:
    """Makes some steps; returns the parameters and the optimizer's state."""
    with torch.no_grad():
        moved = mirror(start, device)
    optimizer = info.optim_cls(moved, **mirror(copy.deepcopy(options), device))

    def closure() -> Tensor:
        optimizer.zero_grad()
        losses = [(each * each).sum().abs() + each.abs().sum() for each in moved]
        loss = torch.stack(losses).sum()
        loss.backward()
        if info.only_supports_sparse_grads:
            for each in moved:
                each.grad = each.grad.to_sparse()
        return loss.detach()

    losses = []
    for _ in range(STEPS):
        if info.step_requires_closure:
            losses.append(optimizer.step(closure))
        else:
            losses.append(closure())
            optimizer.step()
    state = [value for each in moved for value in optimizer.state[each].values()]
    # A fused or capturable optimizer counts steps on the device, others on the host.
    on_device = [
        value for value in state if isinstance(value, Tensor) and value.dim() > 0
    ]
    return losses, [each.detach() for each in moved], on_device


def optimizer_cases() -> Iterator[tuple[OptimizerInfo, torch.dtype]]:
    """Lists optimizers with parameter dtypes."""
    for info in optim_db:
        for dtype in DTYPES:
            if not dtype.is_complex or info.supports_complex:
                yield info, dtype


def check_optimizer(
    tally: Tally, info: OptimizerInfo, dtype: torch.dtype, limit: int | None = None
) -> None:
    """Compares some steps with all option sets, or with the first ones."""
    for i, options in enumerate(configurations(info)):
        if i == limit:
            return
        start = parameters(info, dtype)
        mine, expected = (
            attempt(lambda d=device, s=start, o=options: train(info, s, o, d))
            for device in (tally.device, "cpu")
        )
        tally.compare("forward", f"sample {i} {options}", mine, expected)


def check_optimizer_errors(tally: Tally, info: OptimizerInfo) -> None:
    """Compares the types of the exceptions for what the database says is refused."""
    with quiet():
        errors = info.optim_error_inputs_func("cpu", torch.float32)
    for i, error in enumerate(errors):
        check_refusal(tally, f"error {i}", functools.partial(_provoke, info, error))


def _provoke(info: OptimizerInfo, error: ErrorOptimizerInput, device: str) -> None:
    """Does on a device what raises an exception."""
    sample = error.optimizer_error_input
    params, options = mirror((sample.params, sample.kwargs), device)
    optimizer = info.optim_cls(params, **options)
    if error.error_on == OptimizerErrorEnum.STEP_ERROR:
        optimizer.step()
