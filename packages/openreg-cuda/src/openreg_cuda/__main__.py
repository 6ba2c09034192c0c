# SPDX-License-Identifier: BSD-3-Clause
"""Runs a program on simulated CUDA devices.

``python -m openreg_cuda script.py [argument ...]`` and
``python -m openreg_cuda -m module [argument ...]`` are as without ``-m openreg_cuda``,
with ``OPENREG_DEVICE=cuda`` in the environment. After ``report``, each process of the
program also lists its calls of ``torch.cuda`` that have a form for every device.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

import openreg_cuda
from openreg_cuda._loading import REPORT

_USAGE = """\
usage: python -m openreg_cuda [report] script.py [argument ...]
       python -m openreg_cuda [report] -m module [argument ...]
       python -m openreg_cuda [report] pytest [argument ...]

Runs a program on simulated CUDA devices, with OPENREG_DEVICE=cuda. With report, it also
lists the calls of torch.cuda that have a form for every device, to standard error.
"""


def main(arguments: list[str]) -> None:
    """Runs the program that the arguments name.

    Args:
        arguments: The command line without the name of the package.
    """
    if arguments[:1] in (["-h"], ["--help"]):
        print(_USAGE, end="")
        return
    reports = arguments[:1] == ["report"]
    arguments = arguments[reports:]
    if arguments[:1] == ["pytest"]:
        arguments.insert(0, "-m")
    is_module = arguments[:1] == ["-m"]
    program = arguments[is_module:]
    if not program or program[0].startswith("-"):
        print(_USAGE, end="", file=sys.stderr)
        raise SystemExit(2)
    openreg_cuda.enable()
    if reports:
        os.environ[REPORT] = "1"
    sys.argv = program
    if is_module:
        runpy.run_module(program[0], run_name="__main__", alter_sys=True)
        return
    sys.path[0] = str(Path(program[0]).resolve().parent)
    runpy.run_path(program[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
