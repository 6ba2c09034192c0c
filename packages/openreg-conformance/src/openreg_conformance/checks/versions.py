# SPDX-License-Identifier: BSD-3-Clause
"""How often a call writes to tensors, by the counters that autograd checks."""

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

# Into a tensor without size some composite operators resize it by a call of resize_,
# which counts, on every device but the CPU: at::native::resize_output.
WITHOUT_SIZE = " out= without size"


@dataclasses.dataclass(frozen=True)
class Writes:
    """How far a call took the versions of its tensors.

    Attributes:
        arguments: The change of ``_version`` of each tensor among the arguments.
        results: The same for each result that has an argument's memory; of those that
            are new, None.
    """

    arguments: list[int]
    results: list[int | None]


def _storage(tensor: Tensor) -> int | None:
    return tensor.untyped_storage()._cdata if is_strided(tensor) else None


def count_writes(call: Callable[..., Any], arguments: Arguments) -> Writes:
    """Counts the writes of a call without gradients, by the versions of tensors."""
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
    """Says how versions differ from the CPU's; exceptions are of other tests."""
    if expected.error is not None or mine.value == expected.value:
        return None
    if mine.error is not None:
        return f"{describe(mine.error)} (on the CPU: no error)"
    return f"{mine.value}, on the CPU {expected.value}"


def ways(op: OpInfo, sample: SampleInput) -> dict[str, tuple[Any, Arguments]]:
    """Lists the ways to call an operator on a sample: what is called, with what."""
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
    """Compares what every way to call an operator does to versions."""
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
