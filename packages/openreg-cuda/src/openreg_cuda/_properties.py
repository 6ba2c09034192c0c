# SPDX-License-Identifier: BSD-3-Clause
"""The properties of a device: simulated values are real, all others are constants."""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

from openreg_cuda._backend import openreg


@dataclass(frozen=True)
class DeviceProperties:
    """The properties of a device.

    The memory belongs to the simulation, and the processors are the CPU cores of the
    machine. The other numbers are constants. With ``OPENREG_PROFILE``, the name, the
    capability, the processors and the cache are the ones of the GPU.
    """

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    uuid: UUID
    pci_bus_id: int
    pci_device_id: int = 0
    pci_domain_id: int = 0
    is_integrated: int = 0
    is_multi_gpu_board: int = 0
    max_threads_per_multi_processor: int = 2048
    max_threads_per_block: int = 1024
    regs_per_multiprocessor: int = 65536
    warp_size: int = 32
    gcnArchName: str = ""  # noqa: N815  (CUDA's name)
    L2_cache_size: int = 40 << 20
    clock_rate: int = 1_000_000
    memory_clock_rate: int = 1_000_000
    memory_bus_width: int = 64
    shared_memory_per_block: int = 48 << 10
    shared_memory_per_block_optin: int = 163 << 10
    shared_memory_per_multiprocessor: int = 164 << 10

    def __repr__(self) -> str:
        """Returns the text of CUDA, which logs of programs contain."""
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, "
            f"minor={self.minor}, total_memory={self.total_memory >> 20}MB, "
            f"multi_processor_count={self.multi_processor_count}, uuid={self.uuid}, "
            f"pci_bus_id={self.pci_bus_id}, pci_device_id={self.pci_device_id}, "
            f"pci_domain_id={self.pci_domain_id}, "
            f"L2_cache_size={self.L2_cache_size >> 20}MB)"
        )


def properties(device: int) -> DeviceProperties:
    """Returns the properties of the device of an index."""
    simulated = openreg().get_device_properties(device)
    described = DeviceProperties(
        simulated.name,
        simulated.major,
        simulated.minor,
        simulated.total_memory,
        simulated.multi_processor_count,
        UUID(int=device),
        device,
    )
    cache = simulated.L2_cache_size or described.L2_cache_size
    return replace(described, L2_cache_size=cache)


NAMES: dict[str, object] = {"_CudaDeviceProperties": DeviceProperties}
