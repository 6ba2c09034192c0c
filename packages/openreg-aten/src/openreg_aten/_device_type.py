# SPDX-License-Identifier: BSD-3-Clause
"""Reads ``OPENREG_DEVICE``, which chooses PyTorch's slot for the device."""

from __future__ import annotations

import openreg_runtime


def is_cuda() -> bool:
    """Returns whether the devices take the place of CUDA devices.

    Raises:
        OpenRegError: If the value of ``OPENREG_DEVICE`` is invalid.
    """
    return openreg_runtime.setting("OPENREG_DEVICE").value == "cuda"


def load() -> None:
    """Loads the library before torch if it provides CUDA devices.

    Raises:
        OpenRegError: If the value of ``OPENREG_DEVICE`` is invalid.
        RuntimeError: If it is ``cuda``, and torch has kernels for CUDA or is already
            imported, or the machine has a GPU.
    """
    if is_cuda():
        import _openreg_early

        _openreg_early.load()
