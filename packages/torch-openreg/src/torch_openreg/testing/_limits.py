# SPDX-License-Identifier: BSD-3-Clause
"""The runtime's limits and failures, for PyTorch's devices."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from openreg_runtime import failures
from torch_openreg.openreg import empty_cache
from torch_openreg.openreg._utils import valid_device_index

from ._own_work import own_work

if TYPE_CHECKING:
    from torch.types import Device


@contextmanager
def memory_limit(limit: int, device: Device = None) -> Iterator[None]:
    """Limits the device memory.

    Releases the allocator's cache first. The allocator reserves segments of at least 2
    MiB, so leave room for one more than the tensors need.

    Args:
        limit: Total bytes that the device may use, at most its memory.
        device: Device, index or name; the current device by default.

    Raises:
        RuntimeError: If the device does not exist, or it has less memory.
        TypeError: If ``limit`` is not an int.
        ValueError: If ``limit`` is negative.
    """
    if not isinstance(limit, int):
        raise TypeError(f"memory_limit: limit is {limit!r}, expected bytes as an int")
    index = valid_device_index(device)
    with own_work():
        empty_cache()
    with failures.memory_limit(limit, index):
        yield


@contextmanager
def inject_failure(
    site: failures.Site, *, device: Device = None, **options: Any
) -> Iterator[failures.InjectedFailure]:
    """Makes calls of the device fail or delays them.

    As ``openreg_runtime.failures.inject_failure``. Every operator is a launch,
    including tensor copies. Only requests of the allocator to the device count as
    allocations. The cache is emptied first; a small tensor may still fit between
    others.

    Args:
        site: ``"malloc"``, ``"malloc_host"``, ``"launch"`` or ``"copy"``.
        device: Device, index or name; by default all devices.
        **options: ``first``, ``period``, ``probability``, ``seed``, ``error`` and
            ``delay``.

    Yields:
        The failure, with its ``calls`` and ``hits``.

    Raises:
        RuntimeError: If the device does not exist, or the options contradict each
            other.
        TypeError: If ``site`` is not a str.
        ValueError: If a number or a name is not accepted.
    """
    if not isinstance(site, str):
        raise TypeError(f"inject_failure: site is {site!r}, expected a str")
    index = None if device is None else valid_device_index(device)
    with own_work():
        empty_cache()
    with failures.inject_failure(site, device=index, **options) as failure:
        yield failure
