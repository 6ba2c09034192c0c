# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of all tests: programs in processes of their own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

SECONDS = 50  # for a program

Fork = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def variables() -> Callable[[dict[str, str]], dict[str, str]]:
    """Adds variables to the environment, without those that concern the device."""

    def add(environment: dict[str, str]) -> dict[str, str]:
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("OPENREG_", "TORCH_DEVICE_BACKEND"))
        }
        return inherited | environment

    return add


@pytest.fixture(scope="session")
def fork(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fork]:
    """Runs a file, or source as by ``python -c``, in a process of its own.

    The function takes ``path`` or ``source``, and all of the ``environment``. The
    process has imported PyTorch, and loads the device before the program begins (see
    fork_server.py): variables that Python or PyTorch read when they start have no
    effect.
    """
    folder = tmp_path_factory.mktemp("programs")
    out, err = folder / "out", folder / "err"
    server = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("fork_server.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    requests, replies = server.stdin, server.stdout

    def run(
        *, environment: Mapping[str, str], path: Path | None = None, source: str = ""
    ) -> subprocess.CompletedProcess[str]:
        request = {
            "path": str(path) if path else None,
            "source": source,
            "environment": dict(environment),
            "out": str(out),
            "err": str(err),
            "seconds": SECONDS,
        }
        for file in (out, err):
            file.write_text("")
        requests.write(json.dumps(request) + "\n")
        requests.flush()
        reply = replies.readline()
        assert reply, "the process that forks has ended"
        command, status = [str(path or "-c")], int(reply)
        printed, told = out.read_text("utf-8"), err.read_text("utf-8")
        if status == -signal.SIGALRM:
            raise subprocess.TimeoutExpired(command, SECONDS, printed, told)
        return subprocess.CompletedProcess(command, status, printed, told)

    try:
        yield run
    finally:
        with contextlib.suppress(BrokenPipeError):
            requests.close()
        server.wait()
        replies.close()
