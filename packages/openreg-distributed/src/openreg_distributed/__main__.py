# SPDX-License-Identifier: BSD-3-Clause
"""Command line: ``python -m openreg_distributed flight FILES...``.

It reports the rank that blocks the others.
"""

from __future__ import annotations

import argparse
import sys

from . import flight


def main() -> int:
    """Runs the command; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m openreg_distributed", description="Tools for groups of ranks."
    )
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    command = commands.add_parser(
        "flight", help="combine the flight records of ranks and explain them"
    )
    command.add_argument("files", nargs="+", help="a file of each rank, or a folder")
    command.add_argument(
        "--last",
        type=int,
        default=3,
        help="number of last calls to show for each rank (default: 3)",
    )
    command.add_argument(
        "--pytorch",
        metavar="FOLDER",
        help="also write files for torch.distributed.flight_recorder.fr_trace",
    )
    arguments = parser.parse_args()
    try:
        records = flight.load(arguments.files)
        if arguments.pytorch:
            flight.to_pytorch(records, arguments.pytorch)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    print(flight.explain(records))
    for each in records:
        print(flight.show(each, arguments.last))
    return 0


if __name__ == "__main__":
    sys.exit(main())
