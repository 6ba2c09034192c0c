# SPDX-License-Identifier: BSD-3-Clause
"""Names of storages: what a backend's own class of storages may hold."""

from __future__ import annotations

import torch

from openreg_aten import _C

from ._utils import check_tensor


def storage_name(tensor: torch.Tensor) -> str:
    """Returns the name of the storage of a tensor.

    Args:
        tensor: A tensor of the device that has a storage, of any shape.

    Returns:
        The name, or an empty string if none was set.

    Raises:
        TypeError: If ``tensor`` is no tensor.
        ValueError: If it is not on the device.
    """
    return _C.storage_name(check_tensor(tensor))


def set_storage_name(tensor: torch.Tensor, name: str) -> None:
    """Sets the name of the storage of a tensor.

    All tensors that share the storage share the name: views, results of ``detach()``,
    and what is made by ``set_``. It stays when the storage is resized, and another
    storage, such as that of a clone, a copy or a loaded file, has none. The name means
    nothing to the device.

    Args:
        tensor: A tensor of the device that has a storage, of any shape.
        name: The name; an empty string takes it away.

    Raises:
        TypeError: If ``tensor`` is no tensor, or ``name`` no string.
        ValueError: If the tensor is not on the device.
        RuntimeError: If a kernel made the storage and other tensors or storage objects
            hold it already. A storage from ``torch.empty``, ``.to()`` or ``clone()``
            always takes a name.
    """
    check_tensor(tensor)
    if not isinstance(name, str):
        raise TypeError(f"name: expected a str, got {name!r}")
    _C.set_storage_name(tensor, name)
