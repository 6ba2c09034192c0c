# SPDX-License-Identifier: BSD-3-Clause
"""``torch.cuda.cudart()``: the few functions that PyTorch exposes."""

from __future__ import annotations

import ctypes
from enum import IntEnum
from types import ModuleType
from typing import Any

from openreg_cuda._backend import openreg


class CudaError(IntEnum):
    """The codes that the functions return. Other codes have no name."""

    success = 0
    invalidValue = 1  # noqa: N815  (CUDA's names)
    memoryAllocation = 2  # noqa: N815
    initializationError = 3  # noqa: N815
    invalidDevice = 101  # noqa: N815
    invalidResourceHandle = 400  # noqa: N815
    notReady = 600  # noqa: N815
    illegalAddress = 700  # noqa: N815
    hostMemoryAlreadyRegistered = 712  # noqa: N815
    hostMemoryNotRegistered = 713  # noqa: N815
    notSupported = 801  # noqa: N815
    unknown = 999

    @classmethod
    def _missing_(cls, value: object) -> CudaError | None:
        if not isinstance(value, int):
            return None
        code = int.__new__(cls, value)
        code._name_ = f"error{value}"
        code._value_ = value
        return code


_TEXTS = {
    CudaError.success: "no error",
    CudaError.invalidValue: "invalid argument",
    CudaError.memoryAllocation: "out of memory",
    CudaError.initializationError: "initialization error",
    CudaError.invalidDevice: "invalid device ordinal",
    CudaError.invalidResourceHandle: "invalid resource handle",
    CudaError.notReady: "device not ready",
    CudaError.illegalAddress: "an illegal memory access was encountered",
    CudaError.hostMemoryAlreadyRegistered: (
        "part or all of the requested memory range is already mapped"
    ),
    CudaError.hostMemoryNotRegistered: (
        "pointer does not correspond to a registered memory region"
    ),
    CudaError.notSupported: "operation not supported",
    CudaError.unknown: "unknown error",
}

_registrations: dict[int, Any] = {}  # by address
_streams: dict[int, Any] = {}  # by handle


def _register(address: int, size: int, flags: int) -> CudaError:
    del flags  # portable, mapped and read-only memory is registered in one way
    from openreg_runtime import OpenRegError, pinned

    if not address or size <= 0:
        return CudaError.invalidValue
    memory = (ctypes.c_char * size).from_address(address)
    registration = pinned(memory)
    try:
        registration.__enter__()
    except OpenRegError as error:
        is_known = error.name == "orErrorHostMemoryAlreadyRegistered"
        return (
            CudaError.hostMemoryAlreadyRegistered
            if is_known
            else CudaError.invalidValue
        )
    _registrations[address] = registration
    return CudaError.success


def _unregister(address: int) -> CudaError:
    registration = _registrations.pop(address, None)
    if registration is None:
        return CudaError.hostMemoryNotRegistered
    registration.__exit__(None, None, None)
    return CudaError.success


def _create_stream(address: int) -> CudaError:
    """Writes the handle of a new stream of the current device to an address."""
    from openreg_runtime import Stream

    if not address:
        return CudaError.invalidValue
    stream = Stream(openreg().current_device())
    _streams[stream.handle] = stream
    ctypes.c_void_p.from_address(address).value = stream.handle
    return CudaError.success


def _destroy_stream(handle: int) -> CudaError:
    # The stream ends after its work, as on CUDA.
    if _streams.pop(handle, None) is None:
        return CudaError.invalidResourceHandle
    return CudaError.success


cudart = ModuleType("torch._C._cudart", "The runtime of CUDA.")
vars(cudart).update(
    cudaError=CudaError,
    cudaGetErrorString=lambda error: _TEXTS.get(error, "unrecognized error code"),
    cudaMemGetInfo=lambda device: openreg().mem_get_info(device),
    cudaProfilerStart=lambda: CudaError.success,
    cudaProfilerStop=lambda: CudaError.success,
    cudaHostRegister=_register,
    cudaHostUnregister=_unregister,
    cudaStreamCreate=_create_stream,
    cudaStreamDestroy=_destroy_stream,
)

NAMES: dict[str, object] = {"_cudart": cudart}
