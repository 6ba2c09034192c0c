# SPDX-License-Identifier: BSD-3-Clause
"""Memory of the devices: how much is in use, was in use at most, and is left.

The numbers are those of ``torch.accelerator``, asked for in the manner of
``torch.cuda.memory``. They are 0 until the devices have started.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from openreg_aten import _C

from . import _lazy
from ._utils import valid_device_index

if TYPE_CHECKING:
    from torch.types import Device

__all__ = [
    "OutOfMemoryError",
    "empty_cache",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
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
        RuntimeError: If there is no device of this index.
    """
    if not _lazy.is_initialized():
        return {}
    return torch.accelerator.memory_stats(valid_device_index(device))


def memory_allocated(device: Device = None) -> int:
    """Returns the bytes that tensors use now. As ``torch.cuda.memory_allocated``.

    Args:
        device: Device, index or name; the current device by default.

    Raises:
        RuntimeError: If there is no device of this index.
    """
    return _bytes("allocated_bytes.all.current", device)


def max_memory_allocated(device: Device = None) -> int:
    """Returns the most bytes that tensors used since the peak was reset.

    As ``torch.cuda.max_memory_allocated``.

    Args:
        device: Device, index or name; the current device by default.

    Raises:
        RuntimeError: If there is no device of this index.
    """
    return _bytes("allocated_bytes.all.peak", device)


def memory_reserved(device: Device = None) -> int:
    """Returns the bytes that the allocator holds, in use or not.

    As ``torch.cuda.memory_reserved``.

    Args:
        device: Device, index or name; the current device by default.

    Raises:
        RuntimeError: If there is no device of this index.
    """
    return _bytes("reserved_bytes.all.current", device)


def max_memory_reserved(device: Device = None) -> int:
    """Returns the most bytes that the allocator held since the peak was reset.

    As ``torch.cuda.max_memory_reserved``.

    Args:
        device: Device, index or name; the current device by default.

    Raises:
        RuntimeError: If there is no device of this index.
    """
    return _bytes("reserved_bytes.all.peak", device)


def reset_peak_memory_stats(device: Device = None) -> None:
    """Makes the present use the new peak. As ``torch.cuda.reset_peak_memory_stats``.

    Args:
        device: Device, index or name; the current device by default.

    Raises:
        RuntimeError: If there is no device of this index.
    """
    torch.accelerator.reset_peak_memory_stats(valid_device_index(device))


def reset_accumulated_memory_stats(device: Device = None) -> None:
    """Starts the totals of what was allocated and freed again at 0.

    As ``torch.cuda.reset_accumulated_memory_stats``.

    Args:
        device: Device, index or name; the current device by default.

    Raises:
        RuntimeError: If there is no device of this index.
    """
    torch.accelerator.reset_accumulated_memory_stats(valid_device_index(device))


def mem_get_info(device: Device = None) -> tuple[int, int]:
    """Returns the free and the total bytes of a device. As ``torch.cuda.mem_get_info``.

    Args:
        device: Device, index or name; the current device by default.

    Raises:
        RuntimeError: If there is no device of this index.
    """
    free, total = _C.memory_info(valid_device_index(device))
    return free, total


def empty_cache() -> None:
    """Gives back to the devices what the allocator holds without need.

    As ``torch.cuda.empty_cache``.
    """
    torch.accelerator.empty_cache()


def memory_summary(device: Device = None, abbreviated: bool = False) -> str:
    """Returns the statistics as a table to print. As ``torch.cuda.memory_summary``.

    Args:
        device: Device, index or name; the current device by default.
        abbreviated: Whether to leave out the rows that count blocks.

    Raises:
        RuntimeError: If there is no device of this index.
    """
    index = valid_device_index(device)
    stats = memory_stats(index)
    free, total = mem_get_info(index)
    rows: list[tuple[str, str, Callable[[int], str]]] = [
        ("Allocated memory", "allocated_bytes", _format_bytes),
        ("Active memory", "active_bytes", _format_bytes),
        ("Reserved memory", "reserved_bytes", _format_bytes),
    ]
    if not abbreviated:
        rows += [
            ("Allocations", "allocation", str),
            ("Active allocations", "active", str),
            ("Reserved segments", "segment", str),
        ]
    columns = ("current", "peak", "allocated", "freed")
    lines = [
        f"Memory of openreg:{index}: {_format_bytes(free)} free of "
        f"{_format_bytes(total)}, out of memory {stats.get('num_ooms', 0)} times",
        f"{'':<20}{'Current':>13}{'Peak':>13}{'Total alloc':>13}{'Total freed':>13}",
    ]
    for title, key, form in rows:
        values = (form(stats.get(f"{key}.all.{column}", 0)) for column in columns)
        lines.append(f"{title:<20}" + "".join(f"{value:>13}" for value in values))
    return "\n".join(lines) + "\n"


def _bytes(name: str, device: Device) -> int:
    return int(memory_stats(device).get(name, 0))


def _format_bytes(size: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} TiB"
