# SPDX-License-Identifier: BSD-3-Clause
"""Loads the library early if ``OPENREG_DEVICE`` chooses PyTorch's slot for CUDA."""

from __future__ import annotations

import openreg_runtime


def load() -> None:
    """Loads the library before torch if it provides CUDA devices.

    Raises:
        OpenRegError: If the value of ``OPENREG_DEVICE`` is invalid.
        RuntimeError: If it is ``cuda``, and torch has kernels for CUDA or is already
            imported, or the machine has a GPU.
    """
    if openreg_runtime.is_cuda():
        import _openreg_early

        _openreg_early.load()
