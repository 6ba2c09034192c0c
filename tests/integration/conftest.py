# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the integration tests: one thread, the device, scripts in a process."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch

import openreg_runtime as runtime

ROOT = Path(__file__).resolve().parents[2]
Script = Callable[..., subprocess.CompletedProcess[str]]

# As in the tests of torch_openreg: before the first backward pass of the process. It
# keeps the CPU's sums in one order, so that results can be compared exactly.
torch.set_num_threads(1)


@pytest.fixture
def device() -> str:
    """The simulated accelerator."""
    return "openreg"


@pytest.fixture
def run_script(tmp_path: Path) -> Script:
    """Runs Python source as a file in a process of its own.

    Keyword arguments are environment variables; ``None`` removes one. The script is
    kept as ``script.py`` in the test's folder, so that tracebacks can name its lines.
    """

    def run(source: str, *options: str, **environment: str | None) -> object:
        path = tmp_path / "script.py"
        path.write_text(textwrap.dedent(source).lstrip("\n"))
        merged = os.environ | {k: v for k, v in environment.items() if v is not None}
        for name, value in environment.items():
            if value is None:
                merged.pop(name, None)
        return subprocess.run(
            [sys.executable, *options, str(path)],
            env=merged,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )

    return run


@pytest.fixture
def load_program(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Loads a program of the repository, such as ``examples/x.py``, as a module."""

    def load(path: str) -> ModuleType:
        monkeypatch.syspath_prepend(ROOT / Path(path).parent)  # as Python does
        name = Path(path).stem
        spec = importlib.util.spec_from_file_location(name, ROOT / path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    return load


class Latch:
    """A kernel that holds a device's default stream until it is released.

    Nothing waits for ever: after half a minute the stream goes on, and the test finds
    that somebody has waited for it.
    """

    def __init__(self, index: int) -> None:
        self._stream = runtime.Device(index).default_stream
        self._released = threading.Event()
        started = threading.Event()

        def hold() -> None:
            started.set()
            self._released.wait(30)

        self._stream.launch(hold)
        started.wait()

    @property
    def holds(self) -> bool:
        """Whether the stream has something to do still."""
        return not self._stream.query()

    def release(self) -> None:
        """Lets the stream go on."""
        self._released.set()


@pytest.fixture
def latch() -> Iterator[Callable[[int], Latch]]:
    """Makes latches, which are released after the test at the latest."""
    made: list[Latch] = []

    def make(index: int = 0) -> Latch:
        made.append(Latch(index))
        return made[-1]

    yield make
    for each in made:
        each.release()
    for index in range(torch.accelerator.device_count()):
        torch.accelerator.synchronize(index)
