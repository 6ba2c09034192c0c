# SPDX-License-Identifier: BSD-3-Clause
"""Pins memory that was allocated elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ._C import HostRegistration

if TYPE_CHECKING:
    from typing_extensions import Buffer as HostMemory


@contextmanager
def pinned(memory: HostMemory) -> Iterator[None]:
    """Pins host memory in the context: copies can then use it without waiting.

    Args:
        memory: A contiguous, writable object with the buffer protocol, such as a
            bytearray. It cannot be resized in the context.

    Raises:
        OpenRegError: If it is empty or pinned already, or if the end of the context,
            which waits for all work of all devices, exceeds a wait timeout. The memory
            is then kept until the work is done.
        TypeError: If it is read-only or does not support the buffer protocol.
        ValueError: If it is not contiguous.
    """
    registration = HostRegistration(memory)
    try:
        yield
    finally:
        registration.close()
