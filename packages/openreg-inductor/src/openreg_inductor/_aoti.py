# SPDX-License-Identifier: BSD-3-Clause
"""AOTInductor: the compilation of models, and the runner that loads them."""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import Any

import torch

import libopenreg
import openreg_aten._C  # noqa: F401  (it has the launch)
from openreg_inductor import _C
from openreg_inductor._source import FOLDER

_SUFFIX = "dylib" if sys.platform == "darwin" else "so"
_LIBRARY = FOLDER / "lib" / f"libopenreg_inductor.{_SUFFIX}"


def register() -> None:
    """Registers the runner of models for the device, under its present name."""
    load_library()
    _C.register_runner()


def register_eager() -> None:
    """Registers the runner of operators that Inductor compiles in eager mode."""
    load_library()
    _C.register_eager_runner()


def load_library() -> None:
    """Loads the library whose functions C++ wrappers call by name."""
    ctypes.CDLL(str(_LIBRARY), ctypes.RTLD_GLOBAL)


def enable(device: str) -> None:
    """Enables Inductor to generate and compile C++ for the device.

    Args:
        device: The device name.
    """
    load_library()
    from torch._inductor import codecache, cpp_builder
    from torch._inductor.codegen import cpp_utils

    from openreg_inductor import _overrides

    key = _overrides.key_name()
    # Until torch 2.14; later versions call Overrides.aten_device_type().
    getattr(cpp_utils, "DEVICE_TO_ATEN", {})[device] = f"at::k{key}"
    types = torch._C._autograd.DeviceType
    cpp_utils.DEVICE_TO_INT[device] = getattr(types, key).value

    device_options = cpp_builder.get_cpp_torch_device_options
    wrapper_header = codecache._get_cpp_wrapper_header

    @functools.wraps(device_options)
    def options_with_headers(device_type: str, *args: Any, **kwargs: Any) -> Any:
        is_own = device_type == device
        # Libraries of CUDA are not needed.
        options = device_options("cpu" if is_own else device_type, *args, **kwargs)
        if is_own:
            # The headers that PyTorch's runtime in a model includes.
            options[1].extend(
                [str(FOLDER / "cuda_names"), str(libopenreg.find("include"))]
            )
        return options

    @functools.wraps(wrapper_header)
    def header_to_precompile(device_type: str, aot_mode: bool = False) -> str:
        if device_type == device:
            # This package's header is part of the source, which already includes this
            # one.
            return "torch/csrc/inductor/aoti_torch/c/shim.h"
        return wrapper_header(device_type, aot_mode)

    options: Any = cpp_builder
    options.get_cpp_torch_device_options = options_with_headers
    cache: Any = codecache
    cache._get_cpp_wrapper_header = header_to_precompile
