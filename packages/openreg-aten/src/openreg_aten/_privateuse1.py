# SPDX-License-Identifier: BSD-3-Clause
"""Rejects a second backend in the same slot: a process can have only one."""

from __future__ import annotations

import sys

import torch

import openreg_runtime


def check() -> None:
    """Checks that no other backend is loaded, before the compiled code is loaded.

    PyTorch accepts hooks and fallbacks only from the first backend. The device name
    proves nothing, because a program may set it before it loads this package.

    Raises:
        RuntimeError: If another backend has registered operators.
    """
    if "openreg_aten._C" in sys.modules or openreg_runtime.is_cuda():
        return  # a torch with CUDA devices was rejected before it was loaded
    if torch._C._dispatch_has_kernel_for_dispatch_key(
        "aten::empty.memory_format", "PrivateUse1"
    ):
        raise RuntimeError(
            "openreg-aten cannot be loaded: the backend "
            f"'{torch._C._get_privateuse1_backend_name()}' is, and a process has one "
            "PrivateUse1 device. Set TORCH_DEVICE_BACKEND_AUTOLOAD=0 and import one of "
            "the two packages, or install them into two environments."
        )
