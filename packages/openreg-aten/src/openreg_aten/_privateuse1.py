# SPDX-License-Identifier: BSD-3-Clause
"""Refuses to load beside another backend: a process has one PrivateUse1 device."""

from __future__ import annotations

import sys

import torch


def check() -> None:
    """Checks that no other backend is loaded, before the compiled code is.

    PyTorch takes hooks and fallbacks once, from whoever comes first. The name of the
    device does not tell: a program may name it before it loads this package.

    Raises:
        RuntimeError: If another backend has registered operators.
    """
    if "openreg_aten._C" in sys.modules:
        return
    if torch._C._dispatch_has_kernel_for_dispatch_key(
        "aten::empty.memory_format", "PrivateUse1"
    ):
        raise RuntimeError(
            "openreg-aten cannot be loaded: the backend "
            f"'{torch._C._get_privateuse1_backend_name()}' is, and a process has one "
            "PrivateUse1 device. Set TORCH_DEVICE_BACKEND_AUTOLOAD=0 and import one of "
            "the two packages, or install them into two environments."
        )
