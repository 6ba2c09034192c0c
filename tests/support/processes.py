# SPDX-License-Identifier: BSD-3-Clause
"""The processes of a program's devices, for tests and for the programs they run."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

# The first lines of a program that uses this module.
IMPORT = f"""
import sys
sys.path.append({str(Path(__file__).parents[1])!r})
from support.processes import children_of, descendants_of, process_of
"""


def read_text(path: Path) -> str:
    """Reads a file of ``/proc``; empty if the process or thread has just ended."""
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def children_of(pid: int) -> list[int]:
    """The processes that a process has started, and that have not been reaped."""
    files = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for file in files for child in read_text(file).split()]


def descendants_of(pid: int) -> Iterator[int]:
    """Yields children, and theirs."""
    for child in children_of(pid):
        yield child
        yield from descendants_of(child)


def shared_memory() -> set[str]:
    """What is in ``/dev/shm``, but for what multiprocessing and PyTorch have there.

    Tests and programs beside this one have such files.
    """
    others = ("sem.", "psm_", "torch_", "pym-")
    names = {each.name for each in Path("/dev/shm").iterdir()}
    return {name for name in names if not name.startswith(others)}


def process_of(device: int, program: int | None = None) -> int:
    """The process of a device of this program, or of one that has just begun."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        for pid in descendants_of(program or os.getpid()):
            if read_text(Path(f"/proc/{pid}/comm")) == f"openreg-{device}\n":
                return pid
        time.sleep(0.001)
    raise AssertionError(f"device {device} has no process")
