# SPDX-License-Identifier: BSD-3-Clause
"""How often a call writes to tensors, by the counters that autograd checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from .comparison import describe
from .mirror import DEVICE, is_strided, mirror, tensors
from .operators import Arguments, arguments_of, on
from .tally import Attempt, Tally, attempt

Deltas = tuple[list[int], list[int]]


def _storage(tensor: Tensor) -> int | None:
    return tensor.untyped_storage()._cdata if is_strided(tensor) else None


def count_writes(
    call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Deltas:
    """Counts how far a call takes the versions of its tensors.

    Returns:
        The change of ``_version`` of each tensor among the arguments, and of each
        result: since before the call if it shares an argument's memory, and else since
        it was made.
    """
    given = tensors((args, kwargs))
    before = [each._version for each in given]
    start = {_storage(each): n for each, n in zip(given, before, strict=True)}
    start[None] = 0
    with torch.no_grad():
        results = tensors(call(*args, **kwargs))
    changes = [each._version - n for each, n in zip(given, before, strict=True)]
    return changes, [each._version - start.get(_storage(each), 0) for each in results]


def difference(mine: Attempt, expected: Attempt) -> str | None:
    """Says how versions differ from the CPU's; exceptions are of other tests."""
    if expected.error is not None:
        return None
    if mine.error is not None:
        return f"{describe(mine.error)} (on the CPU: no error)"
    names = ("arguments", "results")
    differing = [
        f"versions of {name} change by {one}, on the CPU by {other}"
        for name, one, other in zip(names, mine.value, expected.value, strict=True)
        if one != other
    ]
    return "; ".join(differing) or None


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
                (" out= without size", lambda each: each.new_empty(0)),
            ):
                made = tuple(make(each) for each in outs)
                out = made[0] if isinstance(expected, Tensor) else made
                found[kind] = op, (arguments[0], {**arguments[1], "out": out})
    return found


def check_versions(tally: Tally, label: str, op: OpInfo, sample: SampleInput) -> None:
    """Compares what every way to call an operator does to versions."""
    for name, (call, arguments) in ways(op, sample).items():
        mine, expected = (
            attempt(lambda d=d, c=call, a=arguments: count_writes(c, *on(d, op, a)))
            for d in (DEVICE, "cpu")
        )
        tally.note("version", label + name, difference(mine, expected))
