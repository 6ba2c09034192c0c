# SPDX-License-Identifier: BSD-3-Clause
"""Runs the same on the CPU and on openreg, forward and backward, and compares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from support.mirrors import tensors

from . import DEVICE
from .tally import Attempt, Tally, attempt


def leaves(arguments: Any) -> list[Tensor]:
    """The tensors that want a gradient."""
    return [each for each in tensors(arguments) if each.requires_grad]


def gradients(outputs: Any, inputs: list[Tensor]) -> list[Tensor | None]:
    """Sends the same made-up gradients back through the tensors of a result."""
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
    """Compares results, arguments as they are afterwards, and gradients.

    Args:
        tally: Takes the count.
        check: One of ``CHECKS``; the gradients count as ``backward``.
        label: What is run, for the message of a failure.
        run: Makes the arguments on a device, and returns the result and them.
        values: Whether the values of results are defined.
        process: Makes of the result what has a defined gradient.
    """
    forward: dict[str, Attempt] = {}  # with the tensors among the arguments
    backward: dict[str, Attempt] = {}
    for device in ("cpu", DEVICE):
        made = attempt(lambda d=device: run(d))
        if made.error is not None:
            forward[device] = backward[device] = made
            continue
        result, arguments = made.value
        forward[device] = Attempt(value=(result, tensors(arguments)))
        outputs = attempt(lambda r=result: process(r)).value
        inputs = leaves(arguments)
        if inputs and any(each.requires_grad for each in tensors(outputs)):
            backward[device] = attempt(lambda o=outputs, i=inputs: gradients(o, i))
    tally.compare(check, label, forward[DEVICE], forward["cpu"], values=values)
    if "cpu" in backward and forward["cpu"].error is None:
        missing = Attempt(error=AssertionError("no result requires a gradient"))
        mine = backward.get(DEVICE, missing)
        tally.compare("backward", label, mine, backward["cpu"], values=values)


def check_refusal(
    tally: Tally, label: str, run: Callable[[str], Any], *, values: bool = True
) -> None:
    """Compares the type of the exception that a call raises on each device."""
    mine, expected = (attempt(lambda d=device: run(d)) for device in (DEVICE, "cpu"))
    tally.compare("error", label, mine, expected, values=values)
