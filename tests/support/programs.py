# SPDX-License-Identifier: BSD-3-Clause
"""Programs in processes of their own: commands, source, and children of a fork."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

SECONDS = 50  # for a program

NO_AUTOLOAD = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}

# OPENREG_DEVICE_LAUNCHER of programs that do not import openreg_runtime.
LAUNCHER = f"{sys.executable} -m openreg_runtime.device"

Ended = subprocess.CompletedProcess[str]
Program = Callable[..., Ended]

# For programs that are run with everything enqueued, and with small operators inline.
both_ways = pytest.mark.parametrize("inline_bytes", ["0", "65536"])


def variables(**added: str) -> dict[str, str]:
    """The environment without what concerns the device or pytest, and with more.

    Programs have their devices where the tests have theirs.
    """
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name == "OPENREG_ISOLATION"
        or not name.startswith(("OPENREG_", "PYTEST_", "TORCH_"))
    }
    return inherited | added


def run(
    *command: str | Path,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    seconds: float = SECONDS,
) -> Ended:
    """Runs a command to its end; returns what it printed and its status.

    Args:
        command: A program and its arguments.
        environment: All variables, or none for those of this process.
        folder: The working directory, or none for that of this process.
        seconds: The command is ended, and the test fails, after this time.
    """
    return subprocess.run(
        [str(each) for each in command],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


@pytest.fixture
def run_python() -> Program:
    """Runs source in a new interpreter that loads no device by itself.

    Keyword arguments are environment variables.
    """

    def start(source: str, **environment: str) -> Ended:
        return run(
            *(sys.executable, "-c", textwrap.dedent(source)),
            environment=os.environ | NO_AUTOLOAD | environment,
        )

    return start


@pytest.fixture
def fork_python(fork: Program) -> Program:
    """Runs source as ``run_python`` does, and as ``fork``."""

    def start(source: str, **environment: str) -> Ended:
        return fork(
            source=textwrap.dedent(source),
            environment=os.environ | NO_AUTOLOAD | environment,
        )

    return start


@pytest.fixture
def run_script(tmp_path: Path) -> Program:
    """Runs source as a file, with options of Python, in a process of its own.

    Keyword arguments are environment variables; ``None`` removes one. The script is
    kept as ``script.py`` in the test's folder, so that tracebacks can name its lines.
    """

    def start(source: str, *options: str, **environment: str | None) -> Ended:
        script = written(tmp_path, source)
        return run(
            *(sys.executable, *options),
            script,
            environment=changed(environment),
            folder=tmp_path,
        )

    return start


@pytest.fixture
def fork_script(fork: Program, tmp_path: Path) -> Program:
    """Runs source as ``run_script`` does, without options, and as ``fork``."""

    def start(source: str, **environment: str | None) -> Ended:
        return fork(
            path=written(tmp_path, source),
            folder=tmp_path,
            environment=changed(environment),
        )

    return start


def written(folder: Path, source: str) -> Path:
    """Writes a script into a folder."""
    path = folder / "script.py"
    path.write_text(textwrap.dedent(source).lstrip("\n"))
    return path


def changed(environment: Mapping[str, str | None]) -> dict[str, str]:
    """The environment with other variables, and without those that are ``None``."""
    merged = {**os.environ, **environment}
    return {name: value for name, value in merged.items() if value is not None}


@pytest.fixture(scope="session")
def fork(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """Runs a file, or source as by ``python -c``, in a process of its own.

    The function takes ``path`` or ``source``, all of the ``environment`` and, if need
    be, a working directory as ``folder``. The process has imported PyTorch, and loads
    the device before the program begins (see fork_server.py): variables that Python or
    PyTorch read when they start have no effect.
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

    def start(
        *,
        environment: Mapping[str, str],
        path: Path | None = None,
        source: str = "",
        folder: Path | None = None,
    ) -> Ended:
        request = {
            "path": str(path) if path else None,
            "source": source,
            "environment": dict(environment),
            "folder": str(folder) if folder else None,
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
        yield start
    finally:
        with contextlib.suppress(BrokenPipeError):
            requests.close()
        server.wait()
        replies.close()
