# SPDX-License-Identifier: BSD-3-Clause
"""Command line: ``python -m openreg_runtime info`` describes the devices."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from importlib.metadata import version

from . import Device, OpenRegError, device_count, settings


def _describe() -> Iterator[str]:
    """Yields the lines of the description."""
    yield f"openreg-runtime {version('openreg-runtime')}"
    yield ""
    yield "devices"
    for index in range(device_count()):
        device = Device(index)
        total, free = device.total_memory / 2**30, device.free_memory / 2**30
        yield f"  {index}  {device.name}  {total:.2f} GiB, {free:.2f} GiB free"
    yield ""
    yield "settings"
    rows = [(s.name, s.value, s.source, s.description) for s in settings()]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = map(str.ljust, row, widths)
        yield f"  {'  '.join(cells)}".rstrip()


def main() -> int:
    """Runs the command.

    Returns:
        The exit status: 1 if an environment variable has a wrong value.
    """
    parser = argparse.ArgumentParser(prog="python -m openreg_runtime")
    parser.add_argument(
        "command", choices=["info"], help="show devices, memory and settings"
    )
    parser.parse_args()
    try:
        lines = list(_describe())
    except OpenRegError as error:
        print(error, file=sys.stderr)
        return 1
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
