# SPDX-License-Identifier: BSD-3-Clause
"""The command ``openreg-predict``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from openreg_predict import _commands


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        arguments: Words after the name of the command; by default, the process's.

    Returns:
        The exit status.
    """
    parser = argparse.ArgumentParser(prog="openreg-predict", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for add in _commands.ALL:
        add(commands)
    options = parser.parse_args(arguments)
    try:
        return int(options.run(options))
    except _commands.CommandError as error:
        print(f"openreg-predict {options.command}: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
