# SPDX-License-Identifier: BSD-3-Clause
"""Flags of CUDA's libraries. They can be set, and have no effect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_values: dict[str, object] = {
    "blas_workspace": 0,
    "blas_lt_workspace": 0,
    "benchmark_limit": 10,
    "empties_cache": False,
}


def _getter(name: str) -> Callable[[], object]:
    return lambda: _values[name]


def _setter(name: str) -> Callable[[object], None]:
    def set_value(value: object) -> None:
        _values[name] = value

    return set_value


def _resetter(name: str, value: object) -> Callable[[], None]:
    return lambda: _setter(name)(value)


def replace() -> None:
    """Replaces the flags that need cuFFT, cuSOLVER or cuBLAS."""
    import torch

    plans: Any = torch.backends.cuda.cuFFTPlanCache
    plans.size = 0
    plans.max_size = 4096
    plans.clear = lambda _: None
    compiled: Any = torch._C
    for name in ("linalg", "blas"):
        value = getattr(compiled, f"_get_{name}_preferred_backend")()
        _values[name] = value
        setattr(compiled, f"_get_{name}_preferred_backend", _getter(name))
        setattr(compiled, f"_set_{name}_preferred_backend", _setter(name))


NAMES: dict[str, object] = {
    "_cuda_clearCublasWorkspaces": lambda: None,
    "_cuda_getCublasWorkspaceSize": _getter("blas_workspace"),
    "_cuda_setCublasWorkspaceSize": _setter("blas_workspace"),
    "_cuda_resetCublasWorkspaceSize": _resetter("blas_workspace", 0),
    "_cuda_getCublasLtWorkspaceSize": _getter("blas_lt_workspace"),
    "_cuda_setCublasLtWorkspaceSize": _setter("blas_lt_workspace"),
    "_cuda_resetCublasLtWorkspaceSize": _resetter("blas_lt_workspace", 0),
    "_cuda_get_cudnn_benchmark_limit": _getter("benchmark_limit"),
    "_cuda_set_cudnn_benchmark_limit": _setter("benchmark_limit"),
    "_cuda_get_conv_benchmark_empty_cache": _getter("empties_cache"),
    "_cudnn_set_conv_benchmark_empty_cache": _setter("empties_cache"),
    # torch.cuda.tunable refuses to change these.
    "_cuda_record_untuned_is_enabled": lambda: False,
    "_cuda_tunableop_is_enabled": lambda: False,
    "_cuda_tunableop_tuning_is_enabled": lambda: False,
    "_cuda_tunableop_get_filename": lambda: "",
    "_cuda_tunableop_get_max_tuning_duration": lambda: 0,
    "_cuda_tunableop_get_max_tuning_iterations": lambda: 0,
    "_cuda_tunableop_get_results": lambda: (),
    "_cuda_tunableop_get_rotating_buffer_size": lambda: 0,
    "_cuda_tunableop_get_validators": lambda: (),
}
