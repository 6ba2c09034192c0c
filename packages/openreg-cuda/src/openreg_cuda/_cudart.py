# SPDX-License-Identifier: BSD-3-Clause
"""``torch.cuda.cudart()``: the few functions that PyTorch exposes."""

from __future__ import annotations

from enum import IntEnum
from types import ModuleType

from openreg_cuda._backend import openreg
from openreg_cuda._refused import Refusal


class CudaError(IntEnum):
    """The codes that the functions return."""

    success = 0
    notSupported = 801  # noqa: N815  (CUDA's name)


_TEXTS = {CudaError.success: "no error", CudaError.notSupported: "not supported"}
_NO_POINTERS = "its memory cannot be addressed by the host"

cudart = ModuleType("torch._C._cudart", "The runtime of CUDA.")
vars(cudart).update(
    cudaError=CudaError,
    cudaGetErrorString=lambda error: _TEXTS.get(error, "unrecognized error code"),
    cudaMemGetInfo=lambda device: openreg().mem_get_info(device),
    cudaProfilerStart=lambda: CudaError.success,
    cudaProfilerStop=lambda: CudaError.success,
    **{
        name: Refusal(f"cudart().{name}", reason)
        for name, reason in {
            "cudaHostRegister": "the runtime pins only memory that it allocates",
            "cudaHostUnregister": "the runtime pins only memory that it allocates",
            "cudaStreamCreate": _NO_POINTERS,
            "cudaStreamDestroy": _NO_POINTERS,
        }.items()
    },
)

NAMES: dict[str, object] = {"_cudart": cudart}
