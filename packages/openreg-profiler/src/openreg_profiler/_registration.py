# SPDX-License-Identifier: BSD-3-Clause
"""Tells PyTorch of the profiler. This may run inside ``import torch``."""

from __future__ import annotations


def register() -> None:
    """Registers the device's activity with ``torch.profiler``, once per process.

    Call it after the backend, ``openreg_aten``, was imported.
    """
    import openreg_runtime  # noqa: F401 - its library is loaded before ours
    from openreg_profiler import _C

    _C.register_profiler()
