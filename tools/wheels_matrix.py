# SPDX-License-Identifier: BSD-3-Clause
"""Installs the wheels of dist into fresh environments, as a user does, and uses them.

    python tools/wheels_matrix.py PYTHON...

Each PYTHON is the interpreter of an environment with a supported torch. Its torch is
linked into a fresh environment, so that nothing is downloaded. The wheels are installed
there by pip, and the program of README runs without any program on ``PATH``. The last
row of the table is a torch that the wheels do not support.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from workspace import DIST, PACKAGES

# The program of README, and one that loads the libraries of the other packages and
# passes an error from library to library.
PROGRAM = """
import torch
x = torch.ones(2, 3, device="openreg")
print(x.device, (x + x).sum().item())
"""
LIBRARIES = """
import torch, torch.distributed as dist
from openreg_aten import _C; from openreg_amp import _C; from openreg_profiler import _C
from openreg_distributed import _C; from openreg_inductor import _C
with torch.autocast("openreg"):
    x = torch.ones(2, 2, device="openreg")
    print((x @ x).dtype)
try:
    x @ x[:1]
except RuntimeError as error:
    print(error)
"""
EXPECTED = "openreg:0 12.0"
UNSUPPORTED = "2.99.0"
_FACTS = """
import sysconfig, sys, torch
print(sysconfig.get_path("purelib"), torch.__version__, sys.version.split()[0])
"""


@dataclass(frozen=True)
class Row:
    """The result of one environment; ``failure`` is empty if all steps passed."""

    python: str
    torch: str
    install_s: float
    first_tensor_s: float
    failure: str = ""

    def __str__(self) -> str:
        """Formats the row of the table."""
        return (
            f"{self.python:8} {self.torch:14} {self.install_s:9.1f} "
            f"{self.first_tensor_s:14.1f}  {self.failure or 'passed'}"
        )


HEADING = "python   torch          install s first tensor s  result"


def _run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs a program without a compiler, or any other program, on ``PATH``."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OPENREG_", "PYTHON")) and name != "VIRTUAL_ENV"
    }
    return subprocess.run(
        [str(part) for part in command],
        env=environment | {"PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def _link(source: Path, target: Path) -> None:
    """Links everything in an environment except this project and its builds."""
    ours = tuple(package.replace("-", "_") for package in PACKAGES)
    skipped = (*ours, "libopenreg", "pytest_openreg", "editable", "pip", "pycache__")
    for entry in source.iterdir():
        new = target / entry.name
        if not entry.name.lstrip("_").startswith(skipped) and not new.exists():
            new.symlink_to(entry)


def check(python: str, wheels: Path) -> Row:
    """Installs the wheels next to the torch of an environment and runs the programs.

    Args:
        python: The interpreter of an environment with torch.
        wheels: The folder with the wheels.
    """
    facts = _run(python, "-c", _FACTS)
    if facts.returncode:
        return Row(python, "", 0, 0, f"no torch: {facts.stderr.strip()[-200:]}")
    packages, torch, version = facts.stdout.split()
    with tempfile.TemporaryDirectory() as folder:
        _run(python, "-m", "venv", folder)
        fresh = Path(folder, "bin", "python")
        purelib = _run(
            fresh, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"
        )
        _link(Path(packages), Path(purelib.stdout.strip()))
        start = time.monotonic()
        pip = (str(fresh), "-m", "pip", "install", "--quiet", "--no-index")
        installed = _run(*pip, "--find-links", wheels, "torch-openreg")
        install_s = time.monotonic() - start
        if installed.returncode:
            return Row(version, torch, install_s, 0, installed.stderr.strip()[-500:])
        start = time.monotonic()
        used = _run(fresh, "-c", PROGRAM)
        first_tensor_s = time.monotonic() - start
        is_wrong = used.stdout.strip() != EXPECTED
        others = [("-m", "torch_openreg"), ("-c", LIBRARIES)]
        failed = [used] if is_wrong or used.returncode else []
        failed += [d for c in others if (d := _run(fresh, *c)).returncode]
        failure = "".join(
            f"exit status {each.returncode}\n{each.stdout}{each.stderr}"
            for each in failed
        )
    return Row(version, torch, install_s, first_tensor_s, failure.strip()[-500:])


def refusal(python: str, wheels: Path) -> str:
    """Returns the error of the wheels for a torch that they do not support.

    Args:
        python: The interpreter of an environment with torch.
        wheels: The folder with the wheels.
    """
    source = (
        "from importlib import metadata; version = metadata.version\n"
        f"metadata.version = lambda name: {UNSUPPORTED!r} if name == 'torch' "
        "else version(name)\n"
        "import openreg_aten"
    )
    with tempfile.TemporaryDirectory() as folder:
        _run(python, "-m", "venv", folder)
        fresh = Path(folder, "bin", "python")
        pip = (str(fresh), "-m", "pip", "install", "--quiet", "--no-index", "--no-deps")
        _run(*pip, "--find-links", wheels, "openreg-runtime", "openreg-aten")
        done = _run(fresh, "-c", source)
    return (done.stderr.strip().splitlines() or ["not refused"])[-1]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="Use the wheels as a user does.")
    parser.add_argument("pythons", nargs="+", metavar="PYTHON")
    parser.add_argument("--wheels", type=Path, default=DIST, help="default: dist")
    arguments = parser.parse_args(argv)
    print(HEADING, flush=True)
    failed = False
    for python in arguments.pythons:
        row = check(python, arguments.wheels)
        failed = failed or bool(row.failure)
        print(row, flush=True)
    refused = refusal(arguments.pythons[0], arguments.wheels)
    print(f"torch {UNSUPPORTED}: {refused}")
    return 1 if failed or "RuntimeError" not in refused else 0


if __name__ == "__main__":
    sys.exit(main())
