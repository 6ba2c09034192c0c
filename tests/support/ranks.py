# SPDX-License-Identifier: BSD-3-Clause
"""Runs a function on the ranks of a process group, each in a process of its own."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from typing import Any

SECONDS = 50  # for all ranks together


@dataclass
class Ended:
    """How a rank ended.

    Attributes:
        value: What its function returned.
        failure: The traceback, if it raised; empty otherwise.
        exitcode: The status of its process, None if it had to be killed for its time.
    """

    value: Any = None
    failure: str = ""
    exitcode: int | None = None


def _run(
    pipe: Connection, function: Callable[..., Any], rank: int, arguments: Any
) -> None:
    try:
        value, failure = function(rank, *arguments), ""
    except BaseException:
        # The parent raises it again; a rank that is told to exit has failed too.
        value, failure = None, traceback.format_exc()
    pipe.send((value, failure))
    pipe.close()


def run_each(
    function: Callable[..., Any], size: int, *arguments: Any, seconds: float = SECONDS
) -> list[Ended]:
    """Runs ``function(rank, *arguments)`` on ranks and returns how each has ended.

    The function must be one of a module. Its threads of the CPU are few, since many
    tests run at a time. What has not ended in time is killed.
    """
    context = multiprocessing.get_context("spawn")
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"
    processes, pipes = [], []
    try:
        for rank in range(size):
            mine, other = context.Pipe(duplex=False)
            process = context.Process(
                target=_run, args=(other, function, rank, arguments)
            )
            process.start()
            other.close()
            processes.append(process)
            pipes.append(mine)
    finally:
        if before is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = before
    ended = [Ended() for _ in range(size)]
    end = time.monotonic() + seconds
    open_pipes = dict(zip(pipes, range(size), strict=True))
    while open_pipes and time.monotonic() < end:
        for pipe in wait_for(list(open_pipes), max(0, end - time.monotonic())):
            rank = open_pipes.pop(pipe)
            try:
                ended[rank].value, ended[rank].failure = pipe.recv()
            except EOFError:
                ended[rank].failure = "the process ended without a result"
    for rank in open_pipes.values():
        ended[rank].failure = f"no result after {seconds} s"
    for rank, process in enumerate(processes):
        process.join(max(0.1, end - time.monotonic()))
        ended[rank].exitcode = process.exitcode
        if process.is_alive():
            process.kill()
            process.join()
    return ended


def run(
    function: Callable[..., Any], size: int, *arguments: Any, seconds: float = SECONDS
) -> list[Any]:
    """Runs a function on ranks, as ``run_each`` does, and returns their results.

    Raises:
        AssertionError: If a rank raised, ended otherwise or took too long; it has the
            tracebacks of all ranks.
    """
    ended = run_each(function, size, *arguments, seconds=seconds)
    wrong = [
        f"rank {rank} (exit status {each.exitcode}):\n{each.failure}"
        for rank, each in enumerate(ended)
        if each.failure or each.exitcode != 0
    ]
    assert not wrong, "\n".join(wrong)
    return [each.value for each in ended]


def new_store() -> str:
    """Returns an address where the ranks of one group can meet, for ``init_method``."""
    return f"file://{Path(tempfile.mkdtemp(prefix='ranks-')) / 'store'}"
