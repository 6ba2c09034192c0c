# SPDX-License-Identifier: BSD-3-Clause
"""Device memory: present use, peak use, and free memory.

The numbers come from ``torch.accelerator``, with the functions of
``torch.cuda.memory``. They are 0 until the devices have started.
:mod:`torch.openreg._memory_history` records the origin of each block.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from openreg_aten import _C

from . import _lazy
from ._memory_history import _dump_snapshot as _dump_snapshot
from ._memory_history import _record_memory_history as _record_memory_history
from ._memory_history import _snapshot as _snapshot
from ._memory_history import memory_snapshot
from ._utils import device_type, valid_device_index

if TYPE_CHECKING:
    from torch.types import Device

__all__ = [
    "OutOfMemoryError",
    "empty_cache",
    "get_per_process_memory_fraction",
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_host_memory_stats",
    "reset_peak_memory_stats",
    "set_per_process_memory_fraction",
]

OutOfMemoryError = torch.OutOfMemoryError


def memory_stats(device: Device = None) -> dict[str, Any]:
    """Returns the allocator's statistics. As ``torch.cuda.memory_stats``.

    Args:
        device: Device, index or name; the current device by default.

    Returns:
        Counts and sizes in bytes by name, such as ``allocated_bytes.all.peak``; the
        names are explained at ``torch.accelerator.memory_stats``. Empty until the
        devices have started.

    Raises:
        RuntimeError: If the device does not exist.
    """
    if not _lazy.is_initialized():
        return {}
    return torch.accelerator.memory_stats(valid_device_index(device))


def memory_stats_as_nested_dict(device: Device = None) -> dict[str, Any]:
    """Returns :func:`memory_stats` as a dictionary of dictionaries.

    As ``torch.cuda.memory_stats_as_nested_dict``.

    Args:
        device: Device, index or name; the current device by default.

    Raises:
        RuntimeError: If the device does not exist.
    """
    if not _lazy.is_initialized():
        return {}
    stats: dict[str, Any] = torch._C._accelerator_getDeviceStats(
        valid_device_index(device)
    )
    return stats


def memory_allocated(device: Device = None) -> int:
    """Returns the bytes that tensors use now. As ``torch.cuda.memory_allocated``.

    Args:
        device: Device, index or name; the current device by default.

    Raises:
        RuntimeError: If the device does not exist.
    """
    return _bytes("allocated_bytes.all.current", device)


def max_memory_allocated(device: Device = None) -> int:
    """Returns the most bytes that tensors used since the peak was reset.

    As ``torch.cuda.max_memory_allocated``.

    Args:
        device: Device, index or name; the current device by default.

    Raises:
        RuntimeError: If the device does not exist.
    """
    return _bytes("allocated_bytes.all.peak", device)


def memory_reserved(device: Device = None) -> int:
    """Returns the bytes that the allocator holds, in use or not.

    As ``torch.cuda.memory_reserved``.

    Args:
        device: Device, index or name; the current device by default.

    Raises:
        RuntimeError: If the device does not exist.
    """
    return _bytes("reserved_bytes.all.current", device)


def max_memory_reserved(device: Device = None) -> int:
    """Returns the most bytes that the allocator held since the peak was reset.

    As ``torch.cuda.max_memory_reserved``.

    Args:
        device: Device, index or name; the current device by default.

    Raises:
        RuntimeError: If the device does not exist.
    """
    return _bytes("reserved_bytes.all.peak", device)


def reset_peak_memory_stats(device: Device = None) -> None:
    """Sets the peak to the present use. As ``torch.cuda.reset_peak_memory_stats``.

    Args:
        device: Device, index or name; the current device by default.

    Raises:
        RuntimeError: If the device does not exist.
    """
    torch.accelerator.reset_peak_memory_stats(valid_device_index(device))


def reset_accumulated_memory_stats(device: Device = None) -> None:
    """Resets the totals of allocated and freed bytes to 0.

    As ``torch.cuda.reset_accumulated_memory_stats``.

    Args:
        device: Device, index or name; the current device by default.

    Raises:
        RuntimeError: If the device does not exist.
    """
    torch.accelerator.reset_accumulated_memory_stats(valid_device_index(device))


def mem_get_info(device: Device = None) -> tuple[int, int]:
    """Returns the free and the total bytes of a device. As ``torch.cuda.mem_get_info``.

    Args:
        device: Device, index or name; the current device by default.

    Raises:
        RuntimeError: If the device does not exist.
    """
    free, total = _C.memory_info(valid_device_index(device))
    return free, total


def empty_cache() -> None:
    """Releases unused memory of the allocator to the devices.

    Waits for work that still uses it. As ``torch.cuda.empty_cache``.
    """
    torch.accelerator.empty_cache()


def set_per_process_memory_fraction(fraction: float, device: Device = None) -> None:
    """Limits the device memory of this process.

    An allocation beyond the limit raises ``OutOfMemoryError``; reserved memory stays.
    As ``torch.cuda.set_per_process_memory_fraction``.

    Args:
        fraction: The fraction of the device's total memory, from 0 to 1.
        device: Device, index or name; the current device by default.

    Raises:
        TypeError: If ``fraction`` is not a float.
        ValueError: If ``fraction`` is not from 0 to 1.
        RuntimeError: If the device does not exist.
    """
    index = valid_device_index(device)
    if not isinstance(fraction, float):
        raise TypeError(f"fraction must be a float, but got {fraction!r}")
    if not 0 <= fraction <= 1:
        raise ValueError(f"fraction must be from 0 to 1, but got {fraction}")
    _C.set_memory_fraction(index, fraction)


def get_per_process_memory_fraction(device: Device = None) -> float:
    """Returns the fraction that was set, or 1.

    As ``torch.cuda.get_per_process_memory_fraction``.

    Args:
        device: Device, index or name; the current device by default.

    Raises:
        RuntimeError: If the device does not exist.
    """
    return _C.memory_fraction(valid_device_index(device))


def host_memory_stats() -> dict[str, Any]:
    """Returns the statistics of pinned memory. As ``torch.cuda.host_memory_stats``.

    Returns:
        Numbers by name: ``allocations`` and ``allocated_bytes`` count all blocks, in
        use or cached, ``active_requests`` and ``active_bytes`` the blocks in use, each
        with ``.current``, ``.peak``, ``.allocated`` and ``.freed``; ``host_alloc_time``
        and ``host_free_time`` are microseconds, with ``.total``, ``.max``, ``.min``,
        ``.count`` and ``.avg``. Sizes are rounded up to powers of two. Empty until the
        devices have started.
    """
    flat: dict[str, Any] = {}
    for name, value in host_memory_stats_as_nested_dict().items():
        if isinstance(value, dict):
            flat |= {f"{name}.{key}": each for key, each in value.items()}
        else:
            flat[name] = value
    return dict(sorted(flat.items()))


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """Returns :func:`host_memory_stats` as a dictionary of dictionaries.

    As ``torch.cuda.host_memory_stats_as_nested_dict``.
    """
    return _C.host_memory_stats() if _lazy.is_initialized() else {}


def reset_accumulated_host_memory_stats() -> None:
    """Resets the totals of :func:`host_memory_stats` to 0.

    As ``torch.cuda.reset_accumulated_host_memory_stats``.
    """
    if _lazy.is_initialized():
        _C.reset_accumulated_host_memory_stats()


def reset_peak_host_memory_stats() -> None:
    """Sets the peak to the present use of pinned memory.

    As ``torch.cuda.reset_peak_host_memory_stats``.
    """
    if _lazy.is_initialized():
        _C.reset_peak_host_memory_stats()


def memory_summary(device: Device = None, abbreviated: bool = False) -> str:
    """Returns the statistics as a printable table. As ``torch.cuda.memory_summary``.

    Args:
        device: Device, index or name; the current device by default.
        abbreviated: Whether to leave out the rows of the large and the small pool.

    Raises:
        RuntimeError: If the device does not exist.
    """
    index = valid_device_index(device)
    stats = memory_stats(index)
    free, total = mem_get_info(index)
    subtitles = {"large_pool": "  from large pool", "small_pool": "  from small pool"}
    columns = {
        "current": "Cur Usage",
        "peak": "Peak Usage",
        "allocated": "Tot Alloc",
        "freed": "Tot Freed",
    }
    rule = "-" * (23 + 13 * len(columns))
    lines = [
        f"Memory of {device_type()}:{index}: {_format_bytes(free)} free of "
        f"{_format_bytes(total)}",
        f"Out of memory: {stats['num_ooms']}    retries: {stats['num_alloc_retries']}",
        rule,
        f"{'Metric':<23}" + "".join(f"{title:>13}" for title in columns.values()),
    ]

    def add_row(title: str, key: str, form: Callable[[int], str]) -> None:
        values = (form(stats[f"{key}.{column}"]) for column in columns)
        lines.append(f"{title:<23}" + "".join(f"{value:>13}" for value in values))

    for title, key, form in _METRICS:
        lines.append(rule)
        add_row(title, f"{key}.all", form)
        if not abbreviated:
            for pool, subtitle in subtitles.items():
                add_row(subtitle, f"{key}.{pool}", form)
    lines.append(rule)
    add_row("Oversize allocations", "oversize_allocations", str)
    add_row("Oversize segments", "oversize_segments", str)
    return "\n".join(lines) + "\n"


def _bytes(name: str, device: Device) -> int:
    return int(memory_stats(device).get(name, 0))


def _format_bytes(size: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} TiB"


_METRICS: list[tuple[str, str, Callable[[int], str]]] = [
    ("Allocated memory", "allocated_bytes", _format_bytes),
    ("Active memory", "active_bytes", _format_bytes),
    ("Requested memory", "requested_bytes", _format_bytes),
    ("Reserved memory", "reserved_bytes", _format_bytes),
    ("Non-releasable memory", "inactive_split_bytes", _format_bytes),
    ("Allocations", "allocation", str),
    ("Active allocs", "active", str),
    ("Reserved segments", "segment", str),
    ("Non-releasable allocs", "inactive_split", str),
]
