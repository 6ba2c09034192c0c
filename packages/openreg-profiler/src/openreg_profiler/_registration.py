# SPDX-License-Identifier: BSD-3-Clause
"""Registers the profiler in PyTorch, perhaps during ``import torch``."""

from __future__ import annotations


def register() -> None:
    """Registers the device's activity with ``torch.profiler``, once per process.

    Call it after the backend, ``openreg_aten``, was imported.
    """
    import openreg_runtime  # noqa: F401 - loads libopenreg before the module
    from openreg_profiler import _C

    _C.register_profiler()
