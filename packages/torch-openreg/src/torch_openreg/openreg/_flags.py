# SPDX-License-Identifier: BSD-3-Clause
"""Named flags of a tensor: what a backend may hang on it, and torch.save keeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch

from openreg_aten import _C

from ._utils import check_tensor

# PyTorch writes its own bits of a tensor under these names, into the same table.
_TAKEN = ("conj", "neg")


def tensor_flags(tensor: torch.Tensor) -> dict[str, bool]:
    """Returns the flags of a tensor.

    ``torch.save`` and ``pickle`` keep them, and so does ``tensor.detach()``. PyTorch
    does not pass them on to views, clones and copies.

    Args:
        tensor: A tensor of the device, of any shape.

    Returns:
        The flags by their names, in a new dictionary.

    Raises:
        TypeError: If ``tensor`` is no tensor.
        ValueError: If it is not on the device.
    """
    return _C.tensor_flags(check_tensor(tensor))


def set_tensor_flags(tensor: torch.Tensor, flags: Mapping[str, bool]) -> None:
    """Replaces the flags of a tensor.

    They mean nothing to the device. A backend could tell by them how it has laid the
    values out, for example.

    Args:
        tensor: A tensor of the device, of any shape.
        flags: The flags by their names; PyTorch's files have no room for other values
            than bool, and keep the names "conj" and "neg" for themselves.

    Raises:
        TypeError: If ``tensor`` is no tensor, a name no string, or a value no bool.
        ValueError: If the tensor is not on the device, or a name is not to be had.
    """
    check_tensor(tensor)
    given: Iterable[tuple[object, object]] = flags.items()
    for name, value in given:
        if not isinstance(name, str) or not isinstance(value, bool):
            raise TypeError(
                f"flags: expected names with a bool each, got {name!r}: {value!r}"
            )
        if name in _TAKEN:
            raise ValueError(f"flags: the name {name!r} is reserved by PyTorch")
    _C.set_tensor_flags(tensor, dict(flags))
