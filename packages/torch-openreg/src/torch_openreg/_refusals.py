# SPDX-License-Identifier: BSD-3-Clause
"""The calls that a GPU of the profile refuses, with PyTorch's errors.

Only with ``OPENREG_PROFILE`` kernels in Python precede the device's kernels of these
operators.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from torch_openreg._profiles import Profile

_libraries: list[torch.library.Library] = []  # a library ends its kernels


class Refusal(NamedTuple):
    """Calls of operators that fail below a capability.

    Attributes:
        operators: Their names.
        capability: The first capability that has them.
        applies: Whether it refuses a call with these arguments.
        message: The message of the ``RuntimeError``.
    """

    operators: tuple[str, ...]
    capability: tuple[int, int]
    applies: Callable[..., bool]
    message: str


def _is_bfloat16(*args: Any, **_: Any) -> bool:
    tensors = [each for each in args if isinstance(each, torch.Tensor)]
    return tensors[-1].dtype == torch.bfloat16 and all(each.numel() for each in tensors)


def _always(*_: Any, **__: Any) -> bool:
    return True


def _cublas(function: str) -> str:
    return f"CUDA error: CUBLAS_STATUS_NOT_SUPPORTED when calling `{function}`"


_GEMM = (
    "cublasGemmEx( handle, opa, opb, m, n, k, alpha_ptr, a, CUDA_R_16BF, lda, b, "
    "CUDA_R_16BF, ldb, beta_ptr, c, CUDA_R_16BF, ldc, compute_type, "
    "CUBLAS_GEMM_DEFAULT_TENSOR_OP)"
)
_BATCHED = (
    "cublasGemmStridedBatchedEx(handle, opa, opb, (int)m, (int)n, (int)k, alpha_ptr, "
    "a, CUDA_R_16BF, (int)lda, stridea, b, CUDA_R_16BF, (int)ldb, strideb, beta_ptr, "
    "c, CUDA_R_16BF, (int)ldc, stridec, (int)num_batches, compute_type, "
    "CUBLAS_GEMM_DEFAULT_TENSOR_OP)"
)

# cuBLAS emulates bfloat16 products on sm_70 and sm_75, and refuses them on sm_60:
# pytorch/pytorch#57773 and #50442.
REFUSALS = (
    Refusal(
        ("mm", "mm.out", "addmm", "addmm.out", "addmm_"),
        (7, 0),
        _is_bfloat16,
        _cublas(_GEMM),
    ),
    Refusal(
        ("bmm", "bmm.out", "baddbmm", "baddbmm.out", "baddbmm_"),
        (7, 0),
        _is_bfloat16,
        _cublas(_BATCHED),
    ),
    Refusal(
        ("_scaled_mm", "_scaled_mm.out"),
        (8, 9),
        _always,
        "torch._scaled_mm is only supported on CUDA devices with compute capability "
        ">= 9.0 or 8.9, or ROCm MI300+",
    ),
)


def register(profile: Profile, key: str) -> None:
    """Registers the kernels that refuse calls.

    Args:
        profile: The profile of the devices.
        key: The dispatch key of their kernels.
    """
    library = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    _libraries.append(library)
    for refusal in REFUSALS:
        if profile.capability < refusal.capability:
            for name in refusal.operators:
                _precede(library, f"aten::{name}", key, refusal)


def _precede(
    library: torch.library.Library, name: str, key: str, refusal: Refusal
) -> None:
    kernel = torch.library.get_kernel(name, key)

    def check(keys: Any, *args: Any, **kwargs: Any) -> Any:
        if refusal.applies(*args, **kwargs):
            raise RuntimeError(refusal.message)
        return kernel.call_boxed(keys, *args, **kwargs)

    with warnings.catch_warnings():  # PyTorch warns that a kernel is replaced
        warnings.simplefilter("ignore")
        library.impl(  # type: ignore[no-untyped-call]
            name, check, key, with_keyset=True, allow_override=True
        )
