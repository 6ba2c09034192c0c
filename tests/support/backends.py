# SPDX-License-Identifier: BSD-3-Clause
"""Environments in which copies of examples/minimal_backend are built and used."""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
from pathlib import Path

from support.programs import ROOT, Ended, run

SKELETON = ROOT / "examples" / "minimal_backend"
NAME = "acme"


class Environment:
    """A new virtual environment with torch and openreg-runtime, without other packages
    of the workspace.

    Attributes:
        python: Its interpreter.
        variables: The environment variables of its processes.
    """

    def __init__(self, folder: Path) -> None:
        made = (sys.executable, "-m", "venv", "--without-pip", folder)
        subprocess.run([str(each) for each in made], check=True)
        self.python = folder / "bin" / "python"
        (packages,) = folder.glob("lib/python*/site-packages")
        # torch is not installed again: it is taken from where the tests have it.
        above = "\n".join(site.getsitepackages())
        (packages / "above.pth").write_text(above, encoding="utf-8")
        self.variables = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("OPENREG_", "PYTEST_", "TORCH_", "PYTHON"))
        }
        tools = os.pathsep.join(
            [str(self.python.parent), str(Path(sys.executable).parent)]
        )
        self.variables["PATH"] = os.pathsep.join([tools, os.environ["PATH"]])
        self.variables["CMAKE_BUILD_PARALLEL_LEVEL"] = os.environ.get(
            "CMAKE_BUILD_PARALLEL_LEVEL", "2"
        )
        if shutil.which("ccache"):
            self.variables.setdefault("CMAKE_CXX_COMPILER_LAUNCHER", "ccache")

    def run(self, *arguments: str | Path, folder: Path, seconds: float = 120) -> Ended:
        """Runs this Python with arguments in a folder."""
        return run(
            *(self.python, *arguments),
            environment=self.variables,
            folder=folder,
            seconds=seconds,
        )

    def install(self, folder: Path) -> None:
        """Builds and installs the backend in a folder, as its README says."""
        command = "-m pip install --no-build-isolation --no-deps --ignore-installed ."
        ended = self.run(*command.split(), folder=folder, seconds=1200)
        assert ended.returncode == 0, ended.stdout + ended.stderr
