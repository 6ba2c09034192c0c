# SPDX-License-Identifier: BSD-3-Clause
"""Determines why an operator call would make the host wait on CUDA."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from torch_openreg._facts.cuda_conditions import Call
from torch_openreg._facts.cuda_waits import RULES, Rule
from torch_openreg._waits import cause_of_wait


@cache
def rule_of(func: torch._ops.OpOverload) -> Rule | None:
    """Returns the rule of an overload or of its operator, or None."""
    name = func._schema.name
    overload = func._overloadname.removesuffix("_out")
    return RULES.get(f"{name}.{overload}") or RULES.get(name)


def cause_of_cuda_wait(
    func: torch._ops.OpOverload,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    number: bool = False,
) -> str | None:
    """Returns why an operator would wait on CUDA, or None if it would not.

    Args:
        func: The operator.
        args: Its arguments by position.
        kwargs: Its arguments by name.
        number: Whether it comes from ``x[...] = number``.
    """
    rule = rule_of(func)
    if rule is None:
        return cause_of_wait(func, args, kwargs)
    schema = func._schema
    names = [each.name for each in schema.arguments]
    arguments = dict(zip(names, args, strict=False)) | kwargs
    cause = rule.condition(Call(schema.name, arguments, number))
    return None if cause is None else f"{schema.name}{cause}"
