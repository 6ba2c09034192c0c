# SPDX-License-Identifier: BSD-3-Clause
"""The device processes on this machine, from ``/proc``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_LAUNCHERS = ("openreg_runtime.device", "openreg_runtime/device.py")
_STATES = {"R": "running", "S": "idle", "D": "idle", "T": "stopped", "Z": "ended"}


class Process(NamedTuple):
    """A process, as ``/proc`` describes it."""

    pid: int
    parent: int
    name: str
    state: str
    command: list[str]
    memory: int
    """Bytes that are resident."""

    @property
    def is_launcher(self) -> bool:
        """Whether it runs the launcher's program, as do the devices that it forks."""
        return any(word.endswith(_LAUNCHERS) for word in self.command)


def _processes() -> Iterator[Process]:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_text(errors="replace").split("\0")[:-1]
            status = dict(
                line.split(":\t", 1)
                for line in (folder / "status").read_text().splitlines()
                if ":\t" in line
            )
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # it has just ended, or belongs to another user
        yield Process(
            int(folder.name),
            int(status["PPid"]),
            status["Name"],
            _STATES.get(status["State"][0], status["State"]),
            command,
            1024 * int(status.get("VmRSS", "0 kB").split()[0]),
        )


def describe() -> Iterator[str]:
    """Yields a tree of lines: programs, their launchers, and devices."""
    by_pid = {process.pid: process for process in _processes()}
    children = defaultdict(list)
    for process in by_pid.values():
        children[process.parent].append(process)
    for launcher in by_pid.values():
        parent = by_pid.get(launcher.parent)
        if not launcher.is_launcher or parent is None or parent.is_launcher:
            continue
        yield f"{parent.pid}  {' '.join(' '.join(parent.command).split())[:60]}"
        yield f"  {launcher.pid}  launcher"
        for device in sorted(children[launcher.pid], key=lambda each: each.name):
            memory = f"{device.memory / 2**20:.0f} MiB resident"
            yield f"    {device.pid}  {device.name}  {device.state}, {memory}"
