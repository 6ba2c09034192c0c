# SPDX-License-Identifier: BSD-3-Clause
"""Functions of ``torch.cuda`` that query the driver of a real GPU."""

from __future__ import annotations

from typing import Any, NoReturn

import torch

from openreg_cuda._backend import openreg
from openreg_cuda._refused import Refusal

_NO_SENSOR = "it has no sensors; torch.profiler and openreg_profiler measure its work"
_NO_COMPILER = "CUDA source code needs a GPU"
_NO_KERNELS = "there are no GPU kernels to tune"
_NO_RUNNER = "its models are packages; use torch._inductor.aoti_load_package"
_REFUSED = (
    "clock_rate",
    "memory_usage",
    "power_draw",
    "temperature",
    "utilization",
)


def _array_interface(self: torch.Tensor) -> NoReturn:
    # An AttributeError, so that hasattr() is False, as for CPU tensors.
    if not self.is_cuda:
        raise AttributeError(
            f"__cuda_array_interface__: not available for a tensor on {self.device}"
        )
    raise AttributeError(
        "__cuda_array_interface__: not available on a simulated CUDA device: the host "
        "cannot address its memory. Use tensor.cpu()"
    )


def replace() -> None:
    """Replaces the functions, and properties that expose addresses."""
    cuda: Any = torch.cuda
    for name in _REFUSED:
        setattr(cuda, name, Refusal(f"torch.cuda.{name}", _NO_SENSOR))
    cuda.list_gpu_processes = cuda.memory.list_gpu_processes = Refusal(
        "torch.cuda.list_gpu_processes", "no driver knows its processes"
    )
    cuda.device_memory_used = openreg().device_memory_used
    cuda._device_count_nvml = lambda: -1  # not the GPUs of the machine
    for name in ("tune_gemm_in_file", "mgpu_tune_gemm_in_file"):
        setattr(cuda.tunable, name, Refusal(f"torch.cuda.tunable.{name}", _NO_KERNELS))
    cuda._compile_kernel = Refusal("torch.cuda._compile_kernel", _NO_COMPILER)
    models: Any = torch._C._aoti
    models.AOTIModelContainerRunnerCuda = Refusal("torch._export.aot_load", _NO_RUNNER)
    # PyTorch's warns that it was compiled without cuDNN.
    torch.backends.cudnn.is_acceptable = lambda _: False
    torch.Tensor.__cuda_array_interface__ = property(  # type: ignore[assignment]
        _array_interface
    )
