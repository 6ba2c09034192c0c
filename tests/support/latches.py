# SPDX-License-Identifier: BSD-3-Clause
"""Latches: kernels that hold a stream until the test releases it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest


class Latch:
    """A kernel that holds a stream until it is released.

    Waits have a limit: after half a minute the stream continues, and the test detects
    that something has waited for it.
    """

    def __init__(self, stream: Any) -> None:
        self._released = threading.Event()
        started, self._ended = threading.Event(), threading.Event()

        def hold() -> None:
            started.set()
            self._released.wait(30)
            self._ended.set()

        stream.launch(hold)  # and no reference to the stream remains
        started.wait()

    @property
    def holds(self) -> bool:
        """Returns whether the kernel still runs."""
        return not self._ended.is_set()

    def release(self) -> None:
        """Releases the stream."""
        self._released.set()

    @contextmanager
    def released_by_a_thread(self) -> Iterator[None]:
        """Releases the stream from a thread, which needs the GIL."""
        waiting = threading.Event()

        def release() -> None:
            waiting.wait()
            self.release()

        thread = threading.Thread(target=release)
        thread.start()
        waiting.set()
        yield
        thread.join()


Latches = Callable[..., Latch]


@pytest.fixture
def latch() -> Iterator[Latches]:
    """Returns a function that creates latches, which are released after the test.

    The function takes a stream of the runtime or of torch, or the number of a device
    for its default stream.
    """
    import openreg_runtime as runtime

    made: list[Latch] = []

    def make(stream: Any = 0) -> Latch:
        if isinstance(stream, int):
            stream = runtime.Device(stream).default_stream
        elif not isinstance(stream, runtime.Stream):
            stream = runtime.Stream.from_handle(stream.native_handle)
        made.append(Latch(stream))
        return made[-1]

    yield make
    for each in made:
        each.release()
    for index in range(runtime.device_count()):
        runtime.synchronize(index)
