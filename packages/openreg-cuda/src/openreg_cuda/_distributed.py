# SPDX-License-Identifier: BSD-3-Clause
"""Keeps gloo away from device tensors.

A CPU build's gloo counts CUDA among its devices, has no algorithms for it, and ends the
process at the first collective.
"""

from __future__ import annotations

from typing import Any

import torch


def replace() -> None:
    """Makes groups of gloo serve only the CPU."""
    if not torch.distributed.is_available():
        return
    from torch.distributed.distributed_c10d import BackendConfig

    read: Any = BackendConfig.__init__

    def read_and_check(self: Any, backend: Any) -> None:
        read(self, backend)
        devices = self.device_backend_map
        if devices.get("cuda") != "gloo":
            return
        if ":" in str(backend):
            raise RuntimeError(
                f"backend: {str(backend)!r} assigns gloo to CUDA tensors, which it "
                "cannot serve on a simulated CUDA device"
            )
        del devices["cuda"]

    BackendConfig.__init__ = read_and_check  # type: ignore[method-assign]
