# SPDX-License-Identifier: BSD-3-Clause
"""The caching allocator: statistics, limits, snapshots and memory history."""

from __future__ import annotations

from typing import Any

import torch

from openreg_cuda._backend import compiled, openreg

_raw_blocks: dict[int, torch.UntypedStorage] = {}
_recording = False


def _allocate(size: int, stream: int) -> int:
    if size <= 0:
        return 0
    with torch.cuda.stream(torch.cuda.get_stream_from_external(stream)):
        block = torch.empty(size, dtype=torch.uint8, device="cuda").untyped_storage()
    address = block.data_ptr()
    _raw_blocks[address] = block
    return address


def _free(address: int) -> None:
    if not address or _raw_blocks.pop(address, None) is not None:
        return
    if not compiled().free_block(address):
        raise ValueError(
            "caching_allocator_delete: mem_ptr must be an address from "
            f"caching_allocator_alloc, got {address:#x}"
        )


def _snapshot(selected: tuple[int, ...] | None) -> dict[str, Any]:
    """Returns a snapshot of one pool, or of everything.

    Args:
        selected: The two numbers of a pool, both 0 for all, and whether to include
            the history.
    """
    snapshot: dict[str, Any] = compiled().memory_snapshot()
    if selected is None:
        return snapshot
    pool, (traced,) = tuple(selected[:2]), selected[2:] or (True,)
    if any(pool):
        snapshot["segments"] = [
            segment
            for segment in snapshot["segments"]
            if tuple(segment["segment_pool_id"]) == pool
        ]
        snapshot["device_traces"] = [
            [entry for entry in trace if tuple(entry["pool_id"]) == pool]
            for trace in snapshot["device_traces"]
        ]
    if not traced:
        snapshot["device_traces"] = [[] for _ in snapshot["device_traces"]]
    return snapshot


def _record_history(
    enabled: str | None = "all",
    context: str | None = "all",
    stacks: str = "all",
    max_entries: int = 1,
    clear_history: bool = False,
    compile_context: bool = False,
    global_record_annotations: bool = False,
    skip_actions: list[str] | None = None,
    record_pinned_host_memory: bool = False,
    record_cuda: bool = True,
) -> None:
    global _recording
    del compile_context, record_pinned_host_memory
    if not record_cuda:
        return
    openreg().memory._record_memory_history(
        enabled,
        context,
        stacks,
        max_entries,
        clear_history=clear_history,
        skip_actions=skip_actions,
        global_record_annotations=global_record_annotations,
    )
    _recording = enabled is not None


def _record_history_legacy(
    enabled: bool,
    record_context: bool = True,
    max_entries: int = 1,
    record_context_of_history: bool = False,
    record_context_cpp: bool = False,
    clear_history: bool = False,
    compile_context: bool = False,
    global_record_annotations: bool = False,
    skip_actions: list[str] | None = None,
) -> None:
    context = "state" if record_context else None
    _record_history(
        "all" if enabled else None,
        "all" if record_context_of_history else context,
        "all" if record_context_cpp else "python",
        max_entries,
        clear_history,
        compile_context,
        global_record_annotations,
        skip_actions,
    )


def _allocation_traceback(address: int) -> list[dict[str, Any]] | None:
    for segment in _snapshot(None)["segments"]:
        for block in segment["blocks"]:
            if 0 <= address - block["address"] < block["size"]:
                return block.get("frames") or None
    return None


NAMES: dict[str, object] = {
    "_cuda_cudaCachingAllocator_raw_alloc": _allocate,
    "_cuda_cudaCachingAllocator_raw_delete": _free,
    "_cuda_cudaCachingAllocator_enable": lambda value: compiled().set_caching(value),
    "_cuda_cudaCachingAllocator_is_enabled": lambda: compiled().is_caching(),
    "_cuda_attach_out_of_memory_observer": lambda observer: (
        compiled().observe_out_of_memory(observer)
    ),
    "_cuda_getAllocatorBackend": lambda: "native",
    "_cuda_emptyCache": lambda: torch._C._accelerator_emptyCache(),
    "_cuda_memoryStats": lambda device: torch._C._accelerator_getDeviceStats(device),
    "_cuda_resetAccumulatedMemoryStats": lambda device: (
        torch._C._accelerator_resetAccumulatedStats(device)
    ),
    "_cuda_resetPeakMemoryStats": lambda device: torch._C._accelerator_resetPeakStats(
        device
    ),
    "_cuda_hostMemoryStats": lambda: compiled().host_memory_stats(),
    "_cuda_resetAccumulatedHostMemoryStats": lambda: (
        compiled().reset_accumulated_host_memory_stats()
    ),
    "_cuda_resetPeakHostMemoryStats": lambda: compiled().reset_peak_host_memory_stats(),
    "_cuda_getMemoryFraction": lambda device: compiled().memory_fraction(device),
    "_cuda_setMemoryFraction": lambda fraction, device: compiled().set_memory_fraction(
        device, fraction
    ),
    "_cuda_memorySnapshot": _snapshot,
    "_cuda_record_memory_history": _record_history,
    "_cuda_record_memory_history_legacy": _record_history_legacy,
    "_cuda_isHistoryEnabled": lambda: _recording,
    "_cuda_allocationTraceback": _allocation_traceback,
    "_cuda_setMemoryMetadata": lambda text: compiled().set_user_metadata(text),
    "_cuda_getMemoryMetadata": lambda: compiled().user_metadata(),
    "_cuda_memoryMetadataSupported": lambda: True,
}
