# SPDX-License-Identifier: BSD-3-Clause
"""Storage names: an example of data in a backend's own storage class."""

from __future__ import annotations

import torch

from openreg_aten import _C

from ._utils import check_tensor


def storage_name(tensor: torch.Tensor) -> str:
    """Returns the name of the storage of a tensor.

    Args:
        tensor: A device tensor with a storage, of any shape.

    Returns:
        The name, or an empty string if none was set.

    Raises:
        TypeError: If ``tensor`` is not a tensor.
        ValueError: If it is not on the device.
    """
    return _C.storage_name(check_tensor(tensor))


def set_storage_name(tensor: torch.Tensor, name: str) -> None:
    """Sets the name of the storage of a tensor.

    All tensors that share the storage share the name: views, results of ``detach()``,
    and tensors created by ``set_``. It stays when the storage is resized. Another
    storage, for example of a clone, a copy or a loaded file, does not have it. The
    device does not use the name.

    Args:
        tensor: A device tensor with a storage, of any shape.
        name: The name; an empty string removes it.

    Raises:
        TypeError: If ``tensor`` is not a tensor, or ``name`` is not a string.
        ValueError: If the tensor is not on the device.
        RuntimeError: If a kernel allocated the storage and other tensors or storage
            objects already share it. A storage from ``torch.empty``, ``.to()`` or
            ``clone()`` always accepts a name.
    """
    check_tensor(tensor)
    if not isinstance(name, str):
        raise TypeError(f"name: expected a str, got {name!r}")
    _C.set_storage_name(tensor, name)
