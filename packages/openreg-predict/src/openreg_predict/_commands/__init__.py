# SPDX-License-Identifier: BSD-3-Clause
"""The subcommands: each file adds one, with ``add(commands)``.

A function ``add`` makes a parser and sets its default ``run``, a function that takes
the parsed options and returns the exit status.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from openreg_predict._commands import devices, run, tables
from openreg_predict._commands._errors import CommandError

__all__ = ["ALL", "CommandError"]

ALL: list[Callable[[argparse._SubParsersAction[argparse.ArgumentParser]], None]] = [
    devices.add,
    tables.add,
    run.add,
]
