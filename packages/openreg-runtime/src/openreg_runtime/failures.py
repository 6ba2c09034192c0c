# SPDX-License-Identifier: BSD-3-Clause
"""Failures and limits for tests, which hardware cannot provide.

Each function is a context manager, whose changes apply to the whole process.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from ._C import Device, InjectedFailure, current_device

__all__ = [
    "InjectedFailure",
    "inject_failure",
    "lost_device",
    "memory_limit",
    "wait_timeout",
]

Site = Literal["malloc", "malloc_host", "launch", "copy"]
Failure = Literal["MemoryAllocation", "LaunchFailure", "IllegalAddress", "DeviceLost"]

_ERROR_OF_SITE = {"malloc": "MemoryAllocation", "malloc_host": "MemoryAllocation"}
_MICROSECONDS = 1_000_000
_MAX_NUMBER = 2**64 - 1


def _device(device: Device | int | None) -> Device:
    if device is None:
        return current_device()
    return device if isinstance(device, Device) else Device(device)


def _check(name: str, value: float, least: int, most: float) -> None:
    """Raises ValueError unless ``least <= value <= most``."""
    if not least <= value <= most:
        raise ValueError(
            f"inject_failure: {name} is {value}, expected {least} to {most}"
        )


@contextmanager
def inject_failure(
    site: Site,
    *,
    first: int = 1,
    period: int = 0,
    probability: float | None = None,
    seed: int = 0,
    error: Failure | None = None,
    delay: float = 0.0,
    device: Device | int | None = None,
) -> Iterator[InjectedFailure]:
    """Makes calls fail, or delays their work.

    Calls are counted from 1, in the order in which they are made, so that every run of
    a program fails the same calls. Work that was hit still fails after the end of the
    context.

    Args:
        site: The calls to count: ``"malloc"`` (``Buffer``), ``"malloc_host"``
            (``PinnedBuffer``), ``"launch"`` (``Stream.launch``) or ``"copy"``
            (``Buffer.copy_from``, ``copy_to``, ``fill``).
        first: The first call that is hit.
        period: 0 to hit only that call; n to also hit each nth call after it.
        probability: The probability with which each call from ``first`` on is hit,
            instead of ``period``; 0 hits none.
        seed: The seed of the random choice.
        error: The error of the call or of its work: for allocations
            ``"MemoryAllocation"``; for launches and copies ``"LaunchFailure"`` or
            ``"IllegalAddress"``; for a device, ``"DeviceLost"``. By default the first
            of these, or none if there is a ``delay``.
        delay: Seconds, at most 3600, before the allocation or the work.
        device: Counts only calls for this device; by default all.

    Yields:
        The failure, with its ``calls`` and ``hits``.

    Raises:
        ValueError: If a number or a name is not accepted.
        OpenRegError: If the arguments contradict each other, or the device does not
            exist.
    """
    _check("first", first, 1, _MAX_NUMBER)
    _check("period", period, 0, _MAX_NUMBER)
    _check("probability", probability or 0, 0, 1)
    _check("seed", seed, 0, _MAX_NUMBER)
    _check("delay", delay, 0, 3600)
    default = "none" if delay > 0 else _ERROR_OF_SITE.get(site, "LaunchFailure")
    if probability == 0:  # 0 disables the probability in C
        first, period = _MAX_NUMBER, 0
    failure = InjectedFailure(
        site=site,
        error=error or default,
        device=-1 if device is None else _device(device).index,
        delay=math.ceil(delay * _MICROSECONDS),
        first=first,
        period=period,
        probability=probability or 0,
        seed=seed,
    )
    try:
        yield failure
    finally:
        failure.remove()


@contextmanager
def memory_limit(limit: int, device: Device | int | None = None) -> Iterator[None]:
    """Limits the device memory.

    Args:
        limit: Bytes that blocks may use, at most the device's memory. With a limit
            below the present use, allocations fail until enough is freed.
        device: The device, by default the current one.

    Raises:
        ValueError: If the limit is negative.
        OpenRegError: If it is more than the device has.
    """
    target = _device(device)
    before = target.memory_limit
    target.memory_limit = limit
    try:
        yield
    finally:
        target.memory_limit = before


@contextmanager
def wait_timeout(
    seconds: float | None, device: Device | int | None = None
) -> Iterator[None]:
    """Limits the time that calls wait for a device's work.

    A longer wait raises OpenRegError ``orErrorTimeout``; the work continues.

    Args:
        seconds: At most 86400, rounded up to milliseconds; None disables the limit.
        device: The device, by default the current one.

    Raises:
        ValueError: If the number is not accepted.
    """
    target = _device(device)
    before = target.wait_timeout
    target.wait_timeout = seconds
    try:
        yield
    finally:
        target.wait_timeout = before


@contextmanager
def lost_device(device: Device | int) -> Iterator[Device]:
    """Loses a device, as if it were unplugged, and resets it at the end.

    In the context its calls raise OpenRegError ``orErrorDeviceLost``. Afterwards its
    buffers and streams no longer exist.

    Args:
        device: The device.

    Yields:
        The device.
    """
    target = _device(device)
    target.lose()
    try:
        yield target
    finally:
        target.reset()
