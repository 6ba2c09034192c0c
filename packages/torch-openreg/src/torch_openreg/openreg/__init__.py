# SPDX-License-Identifier: BSD-3-Clause
"""``torch.openreg``: the device module, modelled on ``torch.cuda``.

PyTorch also looks up private names here: ``_lazy_init`` before the first tensor,
``_initialized`` in checkpoints, ``_is_in_bad_fork`` in ``torch.manual_seed``,
``_get_generator`` in compiled graphs, ``_utils`` in ``torch.load``, ``_gpu_trace`` for
tracing, ``_sleep`` in its tests of overlapping work, and ``_lazy_call`` in
``torch.accelerator`` since torch 2.14.
"""

from __future__ import annotations

from openreg_aten import _C
from torch_openreg._mechanisms import Mechanism, mechanisms

from . import _gpu_trace as _gpu_trace
from . import _utils as _utils
from . import amp, memory, profiler, random, sanitizer, streams
from ._device import (
    DeviceProperties,
    can_device_access_peer,
    current_device,
    device,
    device_count,
    device_memory_used,
    device_of,
    get_arch_list,
    get_device_capability,
    get_device_name,
    get_device_properties,
    ipc_collect,
    is_available,
    is_bf16_supported,
    is_tf32_supported,
    reset_device,
    set_device,
    synchronize,
)
from ._flags import set_tensor_flags, tensor_flags
from ._lazy import init, is_initialized, lazy_call
from ._operator_paths import operator_paths
from ._profile import utilization
from ._storage_name import set_storage_name, storage_name
from ._tiles import from_tiled, tile_shape, to_tiled
from .amp import get_amp_supported_dtype
from .memory import (
    OutOfMemoryError,
    empty_cache,
    get_per_process_memory_fraction,
    host_memory_stats,
    host_memory_stats_as_nested_dict,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_host_memory_stats,
    reset_accumulated_memory_stats,
    reset_peak_host_memory_stats,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from .random import _get_generator as _get_generator
from .random import (
    default_generators,
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from .streams import (
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    get_stream_from_external,
    is_current_stream_capturing,
    set_stream,
    stream,
)
from .streams import _sleep as _sleep

__all__ = [
    "DeviceProperties",
    "Event",
    "ExternalStream",
    "Mechanism",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "amp",
    "can_device_access_peer",
    "current_device",
    "current_stream",
    "default_generators",
    "default_stream",
    "device",
    "device_count",
    "device_memory_used",
    "device_of",
    "empty_cache",
    "from_tiled",
    "get_amp_supported_dtype",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_per_process_memory_fraction",
    "get_rng_state",
    "get_rng_state_all",
    "get_stream_from_external",
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "is_tf32_supported",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mechanisms",
    "mem_get_info",
    "memory",
    "memory_allocated",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "operator_paths",
    "profiler",
    "random",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_device",
    "reset_peak_host_memory_stats",
    "reset_peak_memory_stats",
    "sanitizer",
    "seed",
    "seed_all",
    "set_device",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_storage_name",
    "set_stream",
    "set_tensor_flags",
    "storage_name",
    "stream",
    "streams",
    "synchronize",
    "tensor_flags",
    "tile_shape",
    "to_tiled",
    "utilization",
]

_lazy_init = init
_lazy_call = lazy_call
_is_in_bad_fork = _C.is_in_bad_fork


def __getattr__(name: str) -> object:
    # torch.utils.checkpoint reads it as a plain attribute, although it changes.
    if name == "_initialized":
        return is_initialized()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
