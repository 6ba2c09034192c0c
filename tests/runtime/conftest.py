# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the runtime's tests: scripts in a process, latches, a leak check."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import openreg_runtime as runtime

Script = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run_script(tmp_path: Path) -> Script:
    """Runs Python source as ``script.py`` in a process of its own.

    Keyword arguments are environment variables.
    """

    def run(source: str, **environment: str) -> subprocess.CompletedProcess[str]:
        path = tmp_path / "script.py"
        path.write_text(textwrap.dedent(source).lstrip("\n"))
        return subprocess.run(
            [sys.executable, str(path)],
            env=os.environ | environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )

    return run


class Latch:
    """A kernel that holds a stream until it is released."""

    def __init__(self, stream: runtime.Stream) -> None:
        self._released = threading.Event()
        started = threading.Event()

        def hold() -> None:
            started.set()
            self._released.wait()

        stream.launch(hold)
        started.wait()

    def release(self) -> None:
        """Lets the stream go on."""
        self._released.set()


@pytest.fixture
def latch() -> Iterator[Callable[[runtime.Stream], Latch]]:
    """Makes latches, which are released after the test at the latest."""
    made: list[Latch] = []

    def make(stream: runtime.Stream) -> Latch:
        made.append(Latch(stream))
        return made[-1]

    yield make
    for each in made:
        each.release()


@pytest.fixture(autouse=True)
def no_leak() -> Iterator[None]:
    """Fails a test after which the process holds more or less than before.

    Threads may be fewer: the worker of a stream ends when it is idle for a while.
    """
    before = runtime.resource_usage()

    def is_as_before() -> bool:
        now = runtime.resource_usage()
        return now.threads <= max(before.threads, runtime.device_count()) and (
            now._replace(threads=before.threads) == before
        )

    yield
    gc.collect()
    deadline = time.monotonic() + 10
    while not is_as_before() and time.monotonic() < deadline:
        # What a stream held last, and its worker, end soon after the stream's work.
        for index in range(runtime.device_count()):
            runtime.synchronize(index)
    assert is_as_before(), (before, runtime.resource_usage())
