# SPDX-License-Identifier: BSD-3-Clause
"""``torch.distributed`` for device tensors: occl serves the name nccl.

gloo serves only the CPU: a CPU build's gloo counts CUDA among its devices, has no
algorithms for it, and ends the process at the first collective.
"""

from __future__ import annotations

import sys
from datetime import timedelta
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import torch

_TIMEOUT = timedelta(minutes=10)  # the default of NCCL


class ProcessGroupNCCL:
    """Replaces PyTorch's class, for programs that pass its options."""

    class Options:
        """Options of NCCL, which have no effect."""

        def __init__(self, is_high_priority_stream: bool = False) -> None:
            self.is_high_priority_stream = is_high_priority_stream
            self.config = SimpleNamespace()
            self._timeout = _TIMEOUT


def replace() -> None:
    """Registers occl for device tensors under the name nccl, if it is installed."""
    if not torch.distributed.is_available():
        return
    from torch.distributed import distributed_c10d

    c10d: Any = distributed_c10d
    serves_nccl = find_spec("openreg_distributed") is not None
    if serves_nccl:
        c10d.Backend.register_backend(
            "occl", _create, extended_api=True, devices=["cuda"]
        )
        c10d._NCCL_AVAILABLE = True
        c10d.default_pg_nccl_timeout = _TIMEOUT
        c10d.ProcessGroupNCCL = ProcessGroupNCCL
        torch.distributed.ProcessGroupNCCL = ProcessGroupNCCL  # type: ignore[misc,assignment]
    read = c10d.BackendConfig.__init__

    def read_and_replace(self: Any, backend: Any) -> None:
        read(self, backend)
        devices = self.device_backend_map
        chosen = devices.get("cuda")
        if chosen == "nccl" and serves_nccl:
            devices["cuda"] = c10d.Backend("occl")
        elif chosen == "gloo" and ":" in str(backend):
            raise RuntimeError(
                f"backend: {str(backend)!r} assigns gloo to CUDA tensors, which it "
                "cannot serve on a simulated CUDA device; use cuda:nccl"
            )
        elif chosen == "gloo":
            del devices["cuda"]

    c10d.BackendConfig.__init__ = read_and_replace
    create_group = c10d._new_process_group_helper

    def create_group_on(
        size: Any, rank: Any, ranks: Any, backend: Any, *args: Any, **options: Any
    ) -> Any:
        # A new group takes the device of the default group, which gloo does not serve.
        device = options.get("device_id")
        served = c10d.BackendConfig(c10d.Backend(backend)).device_backend_map
        if device is not None and device.type == "cuda" and "cuda" not in served:
            options["device_id"] = None
        return create_group(size, rank, ranks, backend, *args, **options)

    c10d._new_process_group_helper = create_group_on


def _create(options: Any, backend_options: Any) -> Any:
    from openreg_distributed import _engine

    # PyTorch makes NCCL the default of the group before it creates the backend.
    caller = sys._getframe(1).f_locals
    if caller.get("backend") in ("nccl", "occl", "undefined"):
        group = caller["pg"]
        group._set_default_backend(type(group).BackendType.CUSTOM)
    if isinstance(backend_options, ProcessGroupNCCL.Options):
        backend_options = None
    return _engine.create(options, backend_options)
