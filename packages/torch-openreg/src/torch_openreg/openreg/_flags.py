# SPDX-License-Identifier: BSD-3-Clause
"""Named flags of a tensor: backend data that torch.save keeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch

from openreg_aten import _C

from ._utils import check_tensor

# PyTorch stores its own tensor bits under these names in the same table.
_TAKEN = ("conj", "neg")


def tensor_flags(tensor: torch.Tensor) -> dict[str, bool]:
    """Returns the flags of a tensor.

    ``torch.save`` and ``pickle`` keep them, and so does ``tensor.detach()``. PyTorch
    does not pass them on to views, clones and copies.

    Args:
        tensor: A device tensor of any shape.

    Returns:
        A new dictionary with the flags by name.

    Raises:
        TypeError: If ``tensor`` is not a tensor.
        ValueError: If it is not on the device.
    """
    return _C.tensor_flags(check_tensor(tensor))


def set_tensor_flags(tensor: torch.Tensor, flags: Mapping[str, bool]) -> None:
    """Replaces the flags of a tensor.

    The device does not use them. A backend could, for example, describe the layout of
    the values.

    Args:
        tensor: A device tensor of any shape.
        flags: The flags by name. PyTorch's files support only bool values and reserve
            the names "conj" and "neg".

    Raises:
        TypeError: If ``tensor`` is not a tensor, a name is not a string, or a value is
            not a bool.
        ValueError: If the tensor is not on the device, or a name is reserved.
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
