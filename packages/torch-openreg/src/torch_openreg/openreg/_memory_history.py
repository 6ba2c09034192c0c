# SPDX-License-Identifier: BSD-3-Clause
"""The history of device memory, in the format of PyTorch's memory viewer.

``python -m torch.cuda._memory_viz trace_plot FILE`` and pytorch.org/memory_viz show the
files that :func:`_dump_snapshot` writes. The functions have the names of
``torch.cuda.memory``, including underscores.
"""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openreg_aten import _C

from . import _lazy
from ._utils import valid_device_index

if TYPE_CHECKING:
    from torch.types import Device

_CONTEXTS = (None, "state", "alloc", "all")
_STACKS = ("python", "all")
_ACTIONS = (
    "alloc",
    "free_requested",
    "free_completed",
    "segment_alloc",
    "segment_free",
    "oom",
    "snapshot",
)


def _record_memory_history(
    enabled: str | bool | None = "all",
    context: str | None = "all",
    stacks: str = "all",
    max_entries: int = sys.maxsize,
    device: Device = None,
    clear_history: bool = False,
    skip_actions: list[str] | None = None,
    global_record_annotations: bool = False,
) -> None:
    """Records allocations on all devices from now on.

    As ``torch.cuda.memory._record_memory_history``. There is no cost while recording is
    off.

    Args:
        enabled: ``"all"`` to record every allocation and free, ``"state"`` to keep only
            what :func:`_snapshot` shows of memory that is in use, None to stop and to
            clear the history. True and False are ``"all"`` and None.
        context: The stacks to keep: for memory in use (``"state"``), also for
            allocations in the history (``"alloc"``), also for frees (``"all"``), or
            None.
        stacks: ``"python"``, or ``"all"`` for C++ frames as well.
        max_entries: The number of entries per device; the oldest are dropped first.
        device: Checked but not used: the history covers all devices.
        clear_history: Whether to clear the earlier history.
        skip_actions: Actions that are not recorded, from ``"alloc"``,
            ``"free_requested"``, ``"free_completed"``, ``"segment_alloc"``,
            ``"segment_free"``, ``"oom"`` and ``"snapshot"``.
        global_record_annotations: Whether the ranges of
            ``torch.profiler.record_function`` are recorded in all threads, or only in
            the threads that call this function.

    Raises:
        ValueError: If an argument has another value.
        RuntimeError: If the device does not exist.
    """
    if isinstance(enabled, bool):
        enabled = "all" if enabled else None
    skipped = list(skip_actions or ())
    _check("enabled", enabled, (None, "state", "all"))
    _check("context", context, _CONTEXTS)
    _check("stacks", stacks, _STACKS)
    for action in skipped:
        _check("skip_actions", action, _ACTIONS)
    if isinstance(max_entries, bool) or not isinstance(max_entries, int):
        raise TypeError(f"max_entries must be an int, but got {max_entries!r}")
    if not 0 < max_entries <= sys.maxsize:
        raise ValueError(
            f"max_entries must be from 1 to {sys.maxsize}, but got {max_entries}"
        )
    valid_device_index(device)
    _C.record_memory_history(
        enabled is not None,
        enabled == "all",
        _CONTEXTS.index(context),
        stacks == "all",
        max_entries,
        clear_history,
        skipped,
        global_record_annotations,
    )


def _snapshot(device: Device = None) -> dict[str, Any]:
    """Returns the state of the allocators of all devices and their recorded history.

    As ``torch.cuda.memory._snapshot``, in the same format.

    Args:
        device: Checked but not used: the snapshot covers all devices.

    Returns:
        ``segments``, a list of reserved segments with their blocks and frames,
        ``device_traces``, a list of recorded actions for each device,
        ``allocator_settings``, and ``external_annotations``, the begins and ends of
        ranges.

    Raises:
        RuntimeError: If the device does not exist.
    """
    valid_device_index(device)
    return _C.memory_snapshot()


def _dump_snapshot(filename: str | os.PathLike[str] = "dump_snapshot.pickle") -> None:
    """Writes :func:`_snapshot` to a file. As ``torch.cuda.memory._dump_snapshot``.

    Args:
        filename: The file to create or replace.

    Raises:
        OSError: If the file cannot be written.
    """
    snapshot = _snapshot()
    Path(filename).write_bytes(pickle.dumps(snapshot))


def memory_snapshot() -> list[dict[str, Any]]:
    """Returns the reserved segments of all devices, and their blocks.

    As ``torch.cuda.memory_snapshot``.

    Returns:
        One dictionary for each segment. Empty until the devices have started.
    """
    if not _lazy.is_initialized():
        return []
    segments: list[dict[str, Any]] = _C.memory_snapshot()["segments"]
    return segments


def _check(name: str, value: object, accepted: tuple[object, ...]) -> None:
    if value not in accepted:
        names = ", ".join(map(repr, accepted))
        raise ValueError(f"{name} must be one of {names}, but got {value!r}")
