# SPDX-License-Identifier: BSD-3-Clause
"""Lines of generated code that handle devices."""

from __future__ import annotations

import torch
from torch._inductor.codegen.common import DeviceOpOverrides

from openreg_aten._C import device_type


def key_name() -> str:
    """Returns PyTorch's name of the device type in C++, such as ``PrivateUse1``."""
    name: str = torch._C._dispatch_key_for_device(device_type())
    return name


class Overrides(DeviceOpOverrides):
    """The device's lines. Kernels determine their stream themselves."""

    def import_get_raw_stream_as(self, name: str) -> str:
        return (
            "from openreg_inductor._interface import Interface as _interface\n"
            f"{name} = _interface.get_raw_stream"
        )

    def set_device(self, device_idx: int) -> str:
        del device_idx
        return "pass"  # the guard has done it

    def current_stream(self) -> str:
        return "_interface.current_stream()"

    def synchronize(self) -> str:
        return "_interface.synchronize()"

    def device_guard(self, device_idx: int) -> str:
        return f"_DeviceGuard({device_idx})"

    def cpp_kernel_type(self) -> str:
        return "void*"

    def cpp_aoti_device_guard(self) -> str:
        return "openreg::inductor::DeviceGuard"

    def aten_device_type(self) -> str:
        return f"at::k{key_name()}"

    def cpp_aoti_stream_guard(self) -> str:
        return "openreg::inductor::DeviceGuard"
