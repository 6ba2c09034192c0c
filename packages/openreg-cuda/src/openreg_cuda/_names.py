# SPDX-License-Identifier: BSD-3-Clause
"""The names that a CPU build of ``torch._C`` lacks."""

from __future__ import annotations

from types import ModuleType

from openreg_cuda import (
    _comm,
    _cudart,
    _devices,
    _flags,
    _graphs,
    _memory,
    _nccl,
    _nvtx,
    _pools,
    _properties,
    _refused,
    _streams,
    _sync_debug,
)

NAMES: dict[str, object] = {
    **_comm.NAMES,
    **_cudart.NAMES,
    **_devices.NAMES,
    **_flags.NAMES,
    **_graphs.NAMES,
    **_memory.NAMES,
    **_nccl.NAMES,
    **_nvtx.NAMES,
    **_pools.NAMES,
    **_properties.NAMES,
    **_refused.NAMES,
    **_streams.NAMES,
    **_sync_debug.NAMES,
}


def add_to(torch_c: ModuleType) -> None:
    """Adds the names to ``torch._C``, before ``torch.cuda`` is imported."""
    vars(torch_c).update(NAMES)
