# SPDX-License-Identifier: BSD-3-Clause
"""Compares directional derivatives of operators, values and tangents."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

from .mirrors import transform
from .operators import Arguments, arguments_of, has_values, on
from .tally import Call, Tally, attempt


def _without_gradients(arguments: Arguments) -> Arguments:
    plain: Arguments = transform(arguments, lambda tensor: tensor)
    return pytree.tree_map_only(Tensor, Tensor.detach, plain)


def _places(arguments: Arguments) -> list[int]:
    """Returns the leaves of the arguments that may have a tangent."""
    return [
        i
        for i, each in enumerate(pytree.tree_leaves(arguments))
        if isinstance(each, Tensor)
        and (each.is_floating_point() or each.is_complex())
        and each.layout == torch.strided
    ]


def _tangent(primal: Tensor, *, strided: bool) -> Tensor:
    generator = torch.Generator().manual_seed(2)
    value = torch.randn(primal.shape, generator=generator, dtype=torch.float64)
    value = value.to(primal.dtype)
    return torch.empty_like(primal).copy_(value) if strided else value


def _unpack(value: Any) -> Any:
    """Splits a result into value and tangent; a zero tangent may have no memory."""
    if not isinstance(value, Tensor):
        return value
    primal, tangent = forward_ad.unpack_dual(value)
    if tangent is not None and tangent._is_zerotensor():
        return primal, "zeros", tuple(tangent.shape), tangent.dtype
    return primal, tangent


def _on_copy(variant: Callable[..., Any], first: Any, *args: Any, **kwargs: Any) -> Any:
    copy = pytree.tree_map_only(Tensor, torch.clone, first)
    result = variant(copy, *args, **kwargs)
    return copy if result is None else result


def differentiate(
    call: Callable[..., Any], arguments: Arguments, place: int, tangent: Tensor
) -> Any:
    """Calls an operator with one dual argument and unpacks the result."""
    leaves, structure = pytree.tree_flatten(arguments)
    with forward_ad.dual_level():
        leaves[place] = forward_ad.make_dual(leaves[place], tangent)
        args, kwargs = pytree.tree_unflatten(leaves, structure)
        return pytree.tree_map(_unpack, call(*args, **kwargs))


def check_forward_ad(tally: Tally, label: str, op: OpInfo, sample: SampleInput) -> None:
    """Compares the derivatives for each argument separately.

    The in-place variant gets a copy of the dual number, which it changes.
    """
    arguments = _without_gradients(arguments_of(sample))
    calls: dict[str, Callable[..., Any]] = {"": op}
    if op.inplace_variant is not None and not sample.broadcasts_input:
        calls[" in place"] = functools.partial(_on_copy, op.inplace_variant)
    leaves = pytree.tree_leaves(arguments)
    tally.call = Call("tangent", op, arguments)
    for place in _places(arguments):
        for name, call in calls.items():
            # The second variant has a contiguous tangent for a non-contiguous argument.
            tangent = _tangent(leaves[place], strided=not name)

            def run(
                device: str,
                place: int = place,
                call: Callable[..., Any] = call,
                tangent: Tensor = tangent,
            ) -> Any:
                return differentiate(
                    call, on(device, op, arguments), place, tangent.to(device)
                )

            mine, expected = (
                attempt(lambda d=d: run(d)) for d in (tally.device, "cpu")
            )
            tally.compare(
                "tangent",
                f"{label}, leaf {place}{name}",
                mine,
                expected,
                values=has_values(op),
                redraw=lambda device, run=run: attempt(lambda: run(device)),
            )
