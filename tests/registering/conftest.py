# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the tests of examples/registering: its libraries, and processes."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "registering"

Program = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def libraries() -> Path:
    """Builds the examples in C++, once for all processes of the test run.

    Returns:
        The folder of the libraries, where the programs look for them.
    """
    build = EXAMPLES / "build"
    build.mkdir(exist_ok=True)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = os.environ | {"PATH": path, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    if shutil.which("ccache"):
        environment.setdefault("CMAKE_CXX_COMPILER_LAUNCHER", "ccache")
    configure = ["cmake", "--fresh", "-S", str(EXAMPLES), "-B", str(build)]
    configure += ["-G", "Ninja", f"-DPython_EXECUTABLE={sys.executable}"]
    compile_ = ["cmake", "--build", str(build), "--parallel", "2"]
    # A second build could write a library again that another process loads just now.
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    built = build / "test_run"
    with (build / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if built.exists() and built.read_text() == run:
            return build
        for command in (configure, compile_):
            result = subprocess.run(
                command,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            assert result.returncode == 0, result.stdout + result.stderr
        built.write_text(run)
    return build


@pytest.fixture(scope="session")
def program(fork: Program) -> Program:
    """Runs source in the place of an example.

    The function takes the path of the example, its source, and variables of the
    environment beside those that the source asks for.
    """

    def run(
        path: Path, source: str, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("OPENREG_", "TORCH_"))
        }
        asked = re.findall(r"^# environment: (.*)$", source, re.MULTILINE)
        wanted = dict(each.split("=") for line in asked for each in line.split())
        return fork(
            source=f"__file__ = {str(path)!r}\n{source}",
            environment=inherited | wanted | environment,
        )

    return run
