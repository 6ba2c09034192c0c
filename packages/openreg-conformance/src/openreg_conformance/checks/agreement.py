# SPDX-License-Identifier: BSD-3-Clause
"""Compares forward and backward results on the CPU and on a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .mirrors import tensors
from .tally import Attempt, Tally, attempt


def leaves(arguments: Any) -> list[Tensor]:
    """Returns the tensors that require a gradient."""
    return [each for each in tensors(arguments) if each.requires_grad]


def gradients(outputs: Any, inputs: list[Tensor]) -> list[Tensor | None]:
    """Runs backward with the same artificial gradients for a result's tensors."""
    differentiable = [each for each in tensors(outputs) if each.requires_grad]
    generator = torch.Generator().manual_seed(1)
    given = []
    for output in differentiable:
        value = torch.randn(output.shape, generator=generator, dtype=torch.float64)
        given.append(value.to(output.dtype).to(output.device))
    return list(torch.autograd.grad(differentiable, inputs, given, allow_unused=True))


def check_agreement(
    tally: Tally,
    check: str,
    label: str,
    run: Callable[[str], tuple[Any, Any]],
    *,
    values: bool = True,
    process: Callable[[Any], Any] = lambda result: result,
) -> None:
    """Compares results, arguments after the call, and gradients.

    Args:
        tally: Counts the check.
        check: One of ``CHECKS``; the gradients count as ``backward``.
        label: The name of the call, for failure messages.
        run: Creates the arguments on a device and returns the result and the arguments.
        values: Whether the values of results are defined.
        process: Converts the result to a value with a defined gradient.
    """
    missing = Attempt(error=AssertionError("no result requires a gradient"))

    def directions(device: str) -> tuple[Attempt, Attempt | None]:
        return _directions(run, device, process, backward=tally.wants("backward"))

    expected, mine = directions("cpu"), directions(tally.device)
    tally.compare(
        check,
        label,
        mine[0],
        expected[0],
        values=values,
        redraw=lambda device: directions(device)[0],
    )
    if expected[1] is not None and expected[0].error is None:
        tally.compare(
            "backward",
            label,
            mine[1] or missing,
            expected[1],
            values=values,
            redraw=lambda device: directions(device)[1] or missing,
        )


def _directions(
    run: Callable[[str], tuple[Any, Any]],
    device: str,
    process: Callable[[Any], Any],
    *,
    backward: bool,
) -> tuple[Attempt, Attempt | None]:
    """Returns the forward results with the tensor arguments, and the gradients."""
    made = attempt(lambda: run(device))
    if made.error is not None:
        return made, made
    result, arguments = made.value
    forward = Attempt(value=(result, tensors(arguments)))
    if not backward:
        return forward, None
    outputs = attempt(lambda: process(result)).value
    inputs = leaves(arguments)
    if not inputs or not any(each.requires_grad for each in tensors(outputs)):
        return forward, None
    return forward, attempt(lambda: gradients(outputs, inputs))


def check_refusal(
    tally: Tally, label: str, run: Callable[[str], Any], *, values: bool = True
) -> None:
    """Compares the type of the exception that a call raises on each device.

    An asynchronous device may raise it when the results are read.
    """

    def run_to_the_end(device: str) -> Any:
        result = run(device)
        for each in tensors(result):
            each.cpu()
        return result

    mine, expected = (
        attempt(lambda d=device: run_to_the_end(d)) for device in (tally.device, "cpu")
    )
    tally.compare("error", label, mine, expected, values=values)
