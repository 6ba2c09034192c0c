# SPDX-License-Identifier: BSD-3-Clause
"""Command line: ``python -m openreg_runtime info`` describes the devices.

The other commands print where the C library is, for builds that link to it.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points, version

import libopenreg

from . import Device, _processes, device_count, settings

# Commands that print a folder: its place in the package, and its purpose.
_FOLDERS = {
    "cmake-dir": (
        "lib/cmake/openreg",
        "folder of openregConfig.cmake: cmake -Dopenreg_DIR=...",
    ),
    "include-dir": ("include", "folder of openreg/openreg.h: c++ -I..."),
    "library-dir": ("lib", "folder of the shared library: c++ -L... -lopenreg"),
    "pkgconfig-dir": (
        "lib/pkgconfig",
        "folder of openreg.pc, for the variable PKG_CONFIG_PATH",
    ),
}


def _register_settings() -> None:
    """Makes the packages above register their settings.

    Raises:
        RuntimeError: If such a package cannot be imported.
    """
    settings()  # raises for invalid settings of the runtime
    for entry in entry_points(group="openreg.settings"):
        try:
            entry.load()
        except Exception as error:
            settings()  # raises if an invalid setting of the package is the cause
            cause: BaseException = error
            while cause.__cause__ is not None:
                cause = cause.__cause__
            raise RuntimeError(f"the settings of {entry.name}: {cause}") from error


def _describe() -> Iterator[str]:
    """Yields the lines of the description."""
    yield f"openreg-runtime {version('openreg-runtime')}"
    yield ""
    yield "devices"
    for index in range(device_count()):
        device = Device(index)
        total, free = device.total_memory / 2**30, device.free_memory / 2**30
        yield f"  {index}  {device.name}  {total:.2f} GiB, {free:.2f} GiB free"
    running = list(_processes.describe())
    if running:
        yield ""
        yield "device processes on this machine"
        yield from (f"  {line}" for line in running)
    yield ""
    yield "settings"
    rows = [(s.name, s.value, s.source, s.description) for s in settings()]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = map(str.ljust, row, widths)
        yield f"  {'  '.join(cells)}".rstrip()
    known = {row[0] for row in rows}
    for name in sorted(os.environ):
        if name.startswith("OPENREG_") and name not in known:
            yield f"warning: no installed package reads {name}"


def main() -> int:
    """Runs the command.

    Returns:
        The exit status: 1 if an environment variable has an invalid value, or a package
        above cannot be imported.
    """
    parser = argparse.ArgumentParser(
        prog="python -m openreg_runtime",
        description="Describe the simulated devices, or locate their C library.",
    )
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    commands.add_parser("info", help="show devices, memory, settings and processes")
    for name, (_, text) in _FOLDERS.items():
        commands.add_parser(name, help=f"print the {text}")
    command: str = parser.parse_args().command
    if command in _FOLDERS:
        print(libopenreg.find(_FOLDERS[command][0]))
        return 0
    try:
        _register_settings()
        lines = list(_describe())
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
