# SPDX-License-Identifier: BSD-3-Clause
"""Compares an operator's results on a device and on the CPU."""

from __future__ import annotations

import enum
import types
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from .mirrors import bits, is_strided, parts

Tolerances = Mapping[torch.dtype, tuple[float, float]]
NO_TOLERANCES: Tolerances = types.MappingProxyType({})


class Likeness(enum.IntEnum):
    """The agreement of a result with the CPU's."""

    DIFFERENT = 0
    CLOSE = 1  # within torch.testing's tolerance
    SAME = 2  # bitwise equal


def describe(error: BaseException) -> str:
    """Formats an exception in one line."""
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0][:160]}"


def tolerance(dtype: torch.dtype, tolerances: Tolerances) -> dict[str, Any]:
    """Returns the options of ``assert_close`` for a dtype; empty for the defaults."""
    if dtype not in tolerances:
        return {}
    rtol, atol = tolerances[dtype]
    default = torch.testing._comparison.default_tolerances(dtype)
    return {"rtol": max(rtol, default[0]), "atol": max(atol, default[1])}


def _metadata(tensor: Tensor) -> dict[str, Any]:
    strided = is_strided(tensor)
    return {
        "dtype": tensor.dtype,
        "shape": None if tensor.is_nested else tuple(tensor.shape),
        "layout": tensor.layout,
        "stride": tensor.stride() if strided else None,
        "conj": strided and tensor.is_conj(),
        "neg": strided and tensor.is_neg(),
        "coalesced": tensor.is_coalesced()
        if tensor.layout == torch.sparse_coo
        else None,
        "requires_grad": tensor.requires_grad,
    }


def _compare_tensor(
    result: Tensor, expected: Tensor, device: str, values: bool, tolerances: Tolerances
) -> Likeness:
    if result.device.type != device:
        raise AssertionError(f"the result is on {result.device}")
    one, other = _metadata(result), _metadata(expected)
    if one != other:
        differing = [key for key in one if one[key] != other[key]]
        raise AssertionError(
            "; ".join(f"{key} {one[key]}, expected {other[key]}" for key in differing)
        )
    if not values:
        return Likeness.SAME
    likeness = Likeness.SAME
    for mine, wanted in zip(parts(result), parts(expected), strict=True):
        if mine.shape == wanted.shape and torch.equal(bits(mine), bits(wanted)):
            continue
        torch.testing.assert_close(
            mine.detach().cpu(),
            wanted.detach(),
            equal_nan=True,
            check_stride=False,
            **tolerance(wanted.dtype, tolerances),
        )
        likeness = Likeness.CLOSE
    return likeness


def _compare_plain(result: Any, expected: Any, device: str) -> None:
    if isinstance(expected, torch.device):
        expected = torch.device(device, 0) if expected.type == "cpu" else expected
        if isinstance(result, torch.device) and result.index is None:
            result = torch.device(result.type, 0)
    both_nan = expected != expected and result != result
    if not both_nan and (type(result) is not type(expected) or result != expected):
        raise AssertionError(f"{result!r}, expected {expected!r}")


def compare(
    result: Any,
    expected: Any,
    device: str,
    *,
    values: bool = True,
    tolerances: Tolerances = NO_TOLERANCES,
) -> Likeness:
    """Compares two nests of results.

    Args:
        result: From the device.
        expected: From the CPU.
        device: The type of the device.
        values: Whether to compare values in addition to metadata.
        tolerances: Relative and absolute tolerances by dtype, if wider than the
            defaults of ``torch.testing.assert_close``.

    Returns:
        The agreement of the values, for the worst of the tensors.

    Raises:
        AssertionError: If structure, metadata, or values beyond the tolerance differ.
    """
    mine, structure = pytree.tree_flatten(result)
    wanted, expected_structure = pytree.tree_flatten(expected)
    if structure != expected_structure:
        raise AssertionError(f"structure {structure}, expected {expected_structure}")
    likeness = Likeness.SAME
    for one, other in zip(mine, wanted, strict=True):
        if isinstance(other, Tensor) and isinstance(one, Tensor):
            likeness = min(
                likeness, _compare_tensor(one, other, device, values, tolerances)
            )
        else:
            _compare_plain(one, other, device)
    return likeness
