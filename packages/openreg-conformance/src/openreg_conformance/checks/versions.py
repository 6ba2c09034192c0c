# SPDX-License-Identifier: BSD-3-Clause
"""Compares the version counters of tensors, which autograd checks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from .comparison import describe
from .mirrors import is_strided, mirror, tensors
from .operators import Arguments, arguments_of, on
from .tally import Attempt, Call, Tally, attempt

# For an empty out= tensor, some composite operators call resize_, which counts as a
# write, on every device except the CPU: at::native::resize_output.
WITHOUT_SIZE = " out= without size"


@dataclasses.dataclass(frozen=True)
class Writes:
    """The version changes of a call.

    Attributes:
        arguments: The change of ``_version`` of each tensor argument.
        results: The change for each result that shares an argument's memory; None for
            new ones.
    """

    arguments: list[int]
    results: list[int | None]


def _storage(tensor: Tensor) -> int | None:
    return tensor.untyped_storage()._cdata if is_strided(tensor) else None


def count_writes(call: Callable[..., Any], arguments: Arguments) -> Writes:
    """Counts the writes of a call without gradients by tensor versions."""
    args, kwargs = arguments
    given = tensors(arguments)
    before = [each._version for each in given]
    start = {_storage(each): n for each, n in zip(given, before, strict=True)}
    start.pop(None, None)
    with torch.no_grad():
        results = tensors(call(*args, **kwargs))
    return Writes(
        [each._version - n for each, n in zip(given, before, strict=True)],
        [
            each._version - start[_storage(each)] if _storage(each) in start else None
            for each in results
        ],
    )


def difference(mine: Attempt, expected: Attempt) -> str | None:
    """Returns the version differences; other tests compare exceptions."""
    if expected.error is not None or mine.value == expected.value:
        return None
    if mine.error is not None:
        return f"{describe(mine.error)} (on the CPU: no error)"
    return f"{mine.value}, on the CPU {expected.value}"


def ways(op: OpInfo, sample: SampleInput) -> dict[str, tuple[Any, Arguments]]:
    """Lists the call variants of an operator on a sample: function and arguments."""
    arguments = arguments_of(sample)
    found: dict[str, tuple[Any, Arguments]] = {"": (op, arguments)}
    if op.inplace_variant is not None and not sample.broadcasts_input:
        found[" in place"] = op.inplace_variant, arguments
    if op.supports_out and not op.name.startswith("_foreach"):
        args, kwargs = mirror(arguments, "cpu")
        with torch.no_grad():
            expected = attempt(lambda: op(*args, **kwargs)).value
        outs = tensors(expected)
        if outs and all(is_strided(each) for each in outs):
            for kind, make in (
                (" out=", torch.ones_like),
                (WITHOUT_SIZE, lambda each: each.new_empty(0)),
            ):
                made = tuple(make(each) for each in outs)
                out = made[0] if isinstance(expected, Tensor) else made
                found[kind] = op, (arguments[0], {**arguments[1], "out": out})
    return found


def check_versions(tally: Tally, label: str, op: OpInfo, sample: SampleInput) -> None:
    """Compares the version changes of all call variants of an operator."""
    for name, (call, arguments) in ways(op, sample).items():

        def run(
            device: str, call: Any = call, arguments: Arguments = arguments
        ) -> Attempt:
            return attempt(lambda: count_writes(call, on(device, op, arguments)))

        tally.call = Call("version", call, arguments)
        mine = run(tally.device)
        problem = difference(mine, run("cpu"))
        if problem and name == WITHOUT_SIZE and mine.value == run("meta").value:
            problem = None
        tally.note("version", label + name, problem)
