# SPDX-License-Identifier: BSD-3-Clause
"""The device interface of Dynamo and Inductor: streams, events and properties."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any

import torch
from torch._dynamo import device_interface
from torch.types import Device

import openreg_runtime
from openreg_aten import _C


def register() -> None:
    """Registers the interface for the device's name, without and with an index."""
    name = _C.device_type()
    module = getattr(torch, name, None)
    # torch-openreg defines its own classes.
    Interface.Stream = getattr(module, "Stream", torch.Stream)
    Interface.Event = getattr(module, "Event", torch.Event)
    device_interface.register_interface_for_device(name, Interface)
    for index in range(_C.device_count()):
        device_interface.register_interface_for_device(f"{name}:{index}", Interface)


def _index(device: Device) -> int:
    """Returns the index of a device; by default the current index."""
    index: int | None = None
    if device is not None:
        index = device if isinstance(device, int) else torch.device(device).index
    return _C.current_device() if index is None else index


class _Properties:
    """The device properties that Inductor reads."""

    def __init__(self, index: int) -> None:
        device = openreg_runtime.Device(index)
        self.name = device.name
        self.total_memory = device.total_memory
        self.major, self.minor, _ = openreg_runtime.version()
        self.multi_processor_count = os.cpu_count() or 1


class _DeviceGuard:
    """Makes a device current within a ``with`` statement."""

    def __init__(self, device: Device) -> None:
        self.index = _index(device)

    def __enter__(self) -> None:
        self.previous = _C.exchange_device(self.index)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _C.maybe_exchange_device(self.previous)


class _Worker(device_interface.DeviceInterface.Worker):
    """The interface for compile worker processes. It does not initialize devices."""

    _current: int | None = None

    @staticmethod
    def set_device(device: int) -> None:
        _Worker._current = device

    @staticmethod
    def current_device() -> int:
        return _C.current_device() if _Worker._current is None else _Worker._current

    @staticmethod
    def get_device_properties(device: Device = None) -> _Properties:
        return _Properties(_index(device))


class Interface(device_interface.DeviceInterface):
    """The device, for Dynamo and Inductor."""

    device = _DeviceGuard
    Worker = _Worker
    Stream: Any = torch.Stream
    Event: Any = torch.Event

    current_device = staticmethod(_C.current_device)
    device_count = staticmethod(_C.device_count)
    exchange_device = staticmethod(_C.exchange_device)
    maybe_exchange_device = staticmethod(_C.maybe_exchange_device)

    @staticmethod
    def set_device(device: Device) -> None:
        _C.set_device(_index(device))

    @staticmethod
    def is_available() -> bool:
        return _C.device_count() > 0

    @staticmethod
    def stream(stream: torch.Stream) -> torch.Stream:
        return stream  # enters itself

    @staticmethod
    def current_stream(device: Device = None) -> torch.Stream:
        return torch.accelerator.current_stream(_index(device))

    @staticmethod
    def set_stream(stream: torch.Stream) -> None:
        torch.accelerator.set_stream(stream)

    @staticmethod
    def _set_stream_by_id(stream_id: int, device_index: int, device_type: int) -> None:
        torch.accelerator.set_stream(
            torch.Stream(
                stream_id=stream_id, device_index=device_index, device_type=device_type
            )
        )

    @staticmethod
    def get_raw_stream(device_idx: int) -> int:
        return torch.accelerator.current_stream(device_idx).stream_id

    @staticmethod
    def synchronize(device: Device = None) -> None:
        _C.synchronize(_index(device))

    @staticmethod
    def get_compute_capability(device: Device = None) -> str:
        del device
        # The kernels and their caches are the CPU's.
        return str(torch.backends.cpu.get_cpu_capability())

    @staticmethod
    def is_bf16_supported(including_emulation: bool = False) -> bool:
        del including_emulation
        return True

    @staticmethod
    def memory_allocated(device: Device = None) -> int:
        return torch.accelerator.memory_allocated(_index(device))
