# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the tests of examples/registering: its libraries, and processes."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from support.programs import ROOT, Ended, Program, run, variables

EXAMPLES = ROOT / "examples" / "registering"


@pytest.fixture(scope="session")
def libraries() -> Path:
    """Builds the examples in C++, once for all processes of the test run.

    Returns:
        The folder of the libraries, where the programs load them.
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
    # A second build could overwrite a library while another process loads it.
    this_run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    built = build / "test_run"
    with (build / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if built.exists() and built.read_text() == this_run:
            return build
        for command in (configure, compile_):
            result = run(*command, environment=environment, seconds=600)
            assert result.returncode == 0, result.stdout + result.stderr
        built.write_text(this_run)
    return build


@pytest.fixture(scope="session")
def program(fork: Program) -> Program:
    """Runs source in the place of an example.

    The function takes the path of the example, its source, and further environment
    variables. The source can set variables too.
    """

    def start(path: Path, source: str, **environment: str) -> Ended:
        asked = re.findall(r"^# environment: (.*)$", source, re.MULTILINE)
        wanted = dict(each.split("=") for line in asked for each in line.split())
        return fork(
            source=f"__file__ = {str(path)!r}\n{source}",
            environment=variables(**wanted | environment),
        )

    return start
