# SPDX-License-Identifier: BSD-3-Clause
"""Helpers for the tests of libraries that should run on any device.

Most are context managers. The plugin ``pytest_openreg``, which pytest loads
automatically, provides them as fixtures.
"""

from __future__ import annotations

from ._host_sync import HostSync, assert_no_host_sync
from ._leaks import assert_no_leak
from ._limits import inject_failure, memory_limit
from ._ranks import Rank, RanksFailedError, run_each_rank, run_ranks
from ._schedule import schedule

__all__ = [
    "HostSync",
    "Rank",
    "RanksFailedError",
    "assert_no_host_sync",
    "assert_no_leak",
    "inject_failure",
    "memory_limit",
    "run_each_rank",
    "run_ranks",
    "schedule",
]
