# SPDX-License-Identifier: BSD-3-Clause
"""Resolves devices from an index, a name, a ``torch.device`` or a tensor.

``torch.load`` looks up ``_get_device_index`` in this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from openreg_aten import _C

from . import _lazy

if TYPE_CHECKING:
    from torch.types import Device


IS_CUDA = _C.device_type() == "cuda"  # a constant, because Dynamo cannot trace _C


def device_type() -> str:
    """Returns the device name: ``openreg``, unless a setting changes it."""
    return "cuda" if IS_CUDA else torch._C._get_privateuse1_backend_name()


def _get_device_index(
    device: Device, optional: bool = False, allow_cpu: bool = False
) -> int:
    """Returns the index of ``device`` without comparing it to the device count.

    As ``torch.cuda._utils._get_device_index``.

    Args:
        device: Index, ``"openreg:1"``, ``torch.device`` or None.
        optional: Whether None, or a device without an index, means the current device.
        allow_cpu: Whether a CPU device is accepted; its index is -1.

    Raises:
        TypeError: If ``device`` is of another type.
        ValueError: If ``device`` is of another device type, or has no index though
            ``optional`` is false.
    """
    if isinstance(device, int):
        return device
    if device is not None:
        if not isinstance(device, (str, torch.device)):
            raise TypeError(
                "device must be an int, a str, a torch.device or None, but got "
                f"{device!r}"
            )
        device = torch.device(device)
        if allow_cpu and device.type == "cpu":
            return -1
        if device.type != device_type():
            raise ValueError(f"Expected an {device_type()} device, but got: {device}")
        if device.index is not None:
            return device.index
    if not optional:
        raise ValueError(
            f"Expected a torch.device with a specified index or an integer, but got: "
            f"{device}"
        )
    _lazy.init()
    return _C.current_device()


def valid_device_index(device: Device) -> int:
    """Starts the devices and returns the index of ``device``, current by default.

    Raises:
        RuntimeError: If the device does not exist.
    """
    _lazy.init()
    index = _get_device_index(device, optional=True)
    count = _C.device_count()
    if not 0 <= index < count:
        raise RuntimeError(
            f"Invalid device id {index}: invalid device ordinal, expected 0 to "
            f"{count - 1} ({count} {device_type()} devices)"
        )
    return index


def check_tensor(tensor: object) -> torch.Tensor:
    """Returns ``tensor`` if it is a device tensor.

    Raises:
        TypeError: If it is not a tensor.
        ValueError: If it is not on the device.
    """
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"tensor: expected a torch.Tensor, got {tensor!r}")
    if tensor.device.type != device_type():
        raise ValueError(
            f"tensor: expected one on {device_type()}, got one on {tensor.device}"
        )
    return tensor
