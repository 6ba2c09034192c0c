# SPDX-License-Identifier: BSD-3-Clause
"""The devices: their number, the current device, and their properties."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

import openreg_runtime
from openreg_aten import _C
from torch_openreg._profiles import profile

from . import _lazy
from ._utils import _get_device_index, device_type, valid_device_index

if TYPE_CHECKING:
    from torch.types import Device


@dataclass(frozen=True)
class DeviceProperties:
    """The properties of a device.

    Attributes:
        name: The model name, the same for all devices.
        major: The major number of the device's capability.
        minor: The minor number of the device's capability.
        total_memory: The device memory in bytes.
        multi_processor_count: The number of CPU cores, which the devices share.
        L2_cache_size: The bytes of the cache of the GPU that ``OPENREG_PROFILE`` names,
            else 0.

    With ``OPENREG_PROFILE``, the name, the capability and the number of multiprocessors
    are also the ones of the GPU.
    """

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    L2_cache_size: int = 0


def is_available() -> bool:
    """Returns whether a device is available. As ``torch.cuda.is_available``.

    Never raises.
    """
    return device_count() > 0


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Returns whether the current device computes in bfloat16.

    As ``torch.cuda.is_bf16_supported``.

    Args:
        including_emulation: Whether emulation counts. It matters with
            ``OPENREG_PROFILE``: GPUs before capability 8.0 emulate bfloat16. Without a
            profile the devices compute whatever the CPU computes.
    """
    chosen = profile()
    emulates = chosen is not None and not chosen.has_bfloat16
    return is_available() and (including_emulation or not emulates)


def is_tf32_supported() -> bool:
    """Returns whether the GPU of the profile has TF32.

    As ``torch.cuda.is_tf32_supported``.

    False without ``OPENREG_PROFILE``. float32 products have full precision in any case,
    as on the CPU.
    """
    chosen = profile()
    return chosen is not None and chosen.has_bfloat16 and is_available()


def device_count() -> int:
    """Returns the number of devices, 0 if their environment variables are invalid.

    Never raises and does not initialize the devices. As ``torch.cuda.device_count``.
    """
    return _C.device_count()


def current_device() -> int:
    """Returns the index of this thread's device. As ``torch.cuda.current_device``."""
    _lazy.init()
    return _C.current_device()


def set_device(device: Device) -> None:
    """Makes ``device`` this thread's device. As ``torch.cuda.set_device``.

    Args:
        device: Index, name with an index, or ``torch.device`` with an index. Nothing
            happens if the index is negative.

    Raises:
        RuntimeError: If the device does not exist.
        ValueError: If ``device`` is of another device type or has no index.
    """
    index = _get_device_index(device)
    if index >= 0:
        _C.set_device(valid_device_index(index))


class device:  # noqa: N801  (the name in torch.cuda)
    """Makes a device current within a ``with`` statement. As ``torch.cuda.device``.

    Args:
        device: Index, name or ``torch.device``. Nothing happens if it is None or if the
            index is negative.

    Raises:
        RuntimeError: On entry, if there is no device of this index.
        ValueError: If ``device`` is of another device type.
    """

    def __init__(self, device: Device) -> None:
        self.idx = -1 if device is None else _get_device_index(device, optional=True)
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx >= 0:
            self.prev_idx = _C.exchange_device(valid_device_index(self.idx))

    def __exit__(self, *exc_info: object) -> None:
        if self.prev_idx >= 0:
            _C.maybe_exchange_device(self.prev_idx)


class device_of(device):  # noqa: N801  (the name in torch.cuda)
    """Makes the device of a tensor or storage current within a ``with`` statement.

    As ``torch.cuda.device_of``.

    Args:
        obj: Tensor or storage. Nothing happens if it is on another type of device.
    """

    def __init__(self, obj: torch.Tensor | torch.UntypedStorage) -> None:
        super().__init__(obj.device if obj.device.type == device_type() else None)


def get_device_properties(device: Device = None) -> DeviceProperties:
    """Returns the properties of a device. As ``torch.cuda.get_device_properties``.

    Args:
        device: Device, index or name; the current device by default.

    Raises:
        RuntimeError: If the device does not exist.
    """
    simulated = openreg_runtime.Device(valid_device_index(device))
    major, minor = simulated.capability
    chosen = profile()
    return DeviceProperties(
        name=simulated.name,
        major=major,
        minor=minor,
        total_memory=simulated.total_memory,
        multi_processor_count=simulated.multi_processor_count,
        L2_cache_size=0 if chosen is None else chosen.l2_cache_size,
    )


def get_device_name(device: Device = None) -> str:
    """Returns the name of a device's model. As ``torch.cuda.get_device_name``.

    Args:
        device: Device, index or name; the current device by default.

    Raises:
        RuntimeError: If the device does not exist.
    """
    return get_device_properties(device).name


def get_device_capability(device: Device = None) -> tuple[int, int]:
    """Returns the capability of a device. As ``torch.cuda.get_device_capability``.

    Args:
        device: Device, index or name; the current device by default.

    Returns:
        The capability of the GPU that ``OPENREG_PROFILE`` names. Without it, the
        version of the simulated device, which is unrelated to CUDA's capabilities.

    Raises:
        RuntimeError: If the device does not exist.
    """
    properties = get_device_properties(device)
    return properties.major, properties.minor


def get_arch_list() -> list[str]:
    """Returns the instruction set of the kernels. As ``torch.cuda.get_arch_list``.

    The kernels are CPU kernels, so the list has one entry, for example ``["AVX2"]``.
    """
    return [torch.backends.cpu.get_cpu_capability()]


def can_device_access_peer(device: Device, peer_device: Device) -> bool:
    """Returns whether kernels of a device can access another device's memory.

    As ``torch.cuda.can_device_access_peer``. ``OPENREG_PEER_ACCESS`` decides it, or the
    GPU that ``OPENREG_PROFILE`` names.

    Args:
        device: Device, index or name; None is the current device.
        peer_device: The other device; false for the same one.

    Raises:
        RuntimeError: If one of the devices does not exist.
        ValueError: If ``peer_device`` has no index.
    """
    index = valid_device_index(device)
    peer = valid_device_index(_get_device_index(peer_device))
    return openreg_runtime.Device(index).can_access_peer(peer)


def device_memory_used(device: Device = None) -> int:
    """Returns the bytes of device memory that the process uses.

    As ``torch.cuda.device_memory_used``.

    Args:
        device: Device, index or name; the current device by default.

    Raises:
        RuntimeError: If the device does not exist.
    """
    free, total = _C.memory_info(valid_device_index(device))
    return total - free


def synchronize(device: Device = None) -> None:
    """Waits until all work of a device is completed. As ``torch.cuda.synchronize``.

    Args:
        device: Device, index or name; the current device by default.

    Raises:
        RuntimeError: If the device does not exist, or if work enqueued before has
            failed.
    """
    _C.synchronize(valid_device_index(device))


def reset_device(device: Device = None) -> None:
    """Resets a device, also after it was lost. As ``cudaDeviceReset``.

    Waits for running work, or ends it if the device is a separate process, and drops
    enqueued work. The device's streams end, and this thread continues with the default
    stream. The memory statistics restart. Tensors on the device lose their memory and
    may only be deleted. No other thread may use the device during the call.

    Args:
        device: Device, index or name; the current device by default.

    Raises:
        RuntimeError: If the device does not exist, if a kernel of the device calls it,
            or if running work does not end within the wait limit.
    """
    _C.reset_device(valid_device_index(device))


def ipc_collect() -> None:
    """Frees memory that was sent to processes that no longer use it.

    Sending another tensor does so too. As ``torch.cuda.ipc_collect``.
    """
    from torch_openreg import _sharing

    _lazy.init()
    _sharing.collect()
