# SPDX-License-Identifier: BSD-3-Clause
"""The names that a simulated device cannot serve, with the reasons."""

from __future__ import annotations

from typing import Any, NoReturn


class Refusal:
    """A function that raises one clear error, whatever its arguments.

    Args:
        name: The refused call.
        reason: The reason.
    """

    def __init__(self, name: str, reason: str) -> None:
        self._message = f"{name}: not available on a simulated CUDA device: {reason}"

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raises the error.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError(self._message)


def refused_class(name: str, reason: str, methods: tuple[str, ...] = ()) -> type:
    """Returns a class that refuses its construction and its static methods."""
    refusal = Refusal(name, reason)
    members: dict[str, Any] = {
        method: staticmethod(refusal) for method in ("__new__", *methods)
    }
    return type(name, (), {"__doc__": f"Refused: {reason}.", **members})


_REASONS = {
    "there is no GPUDirect Storage without a GPU": (
        "_gds_register_buffer",
        "_gds_deregister_buffer",
        "_gds_register_handle",
        "_gds_deregister_handle",
        "_gds_load_storage",
        "_gds_save_storage",
    ),
    "CUDA source code needs a GPU": ("_cuda_jiterator_compile_and_launch_kernel",),
    "the CPU's kernels compute, so there is no handle of cuBLAS": (
        "_cuda_getCurrentBlasHandle",
    ),
    "the CPU's kernels compute, so there is no handle of cuSOLVER": (
        "_cuda_getCurrentSolverHandle",
    ),
    "there are no GPU kernels to tune": (
        "_cuda_record_untuned_enable",
        "_cuda_tunableop_enable",
        "_cuda_tunableop_read_file",
        "_cuda_tunableop_set_filename",
        "_cuda_tunableop_set_max_tuning_duration",
        "_cuda_tunableop_set_max_tuning_iterations",
        "_cuda_tunableop_set_numerical_check_tolerances",
        "_cuda_tunableop_set_rotating_buffer_size",
        "_cuda_tunableop_tuning_enable",
    ),
    "an allocator of CUDA memory cannot allocate simulated memory": (
        "_cuda_changeCurrentAllocator",
        "_cuda_customAllocator",
        "_cuda_getAllocator",
    ),
    "its allocator of pinned memory has no address": ("_cuda_cudaHostAllocator",),
    "torch.compile captures graphs without cudagraph trees": (
        "_set_storage_access_error_msg",
        "_set_storage_data_ptr_access_error_msg",
    ),
    "ranks of one program per device need torch.distributed": (
        "_nccl_init_rank",
        "_nccl_unique_id",
    ),
}

NAMES: dict[str, object] = {
    "_CUDAGreenContext": refused_class(
        "GreenContext",
        "it has no multiprocessors to divide",
        ("create", "max_workqueue_concurrency"),
    ),
    "_cuda_CUDAAllocator": refused_class(
        "CUDAAllocator", "an allocator of CUDA memory cannot allocate simulated memory"
    ),
    **{
        name: Refusal(f"torch._C.{name}", reason)
        for reason, names in _REASONS.items()
        for name in names
    },
}
