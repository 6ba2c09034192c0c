# SPDX-License-Identifier: BSD-3-Clause
"""The order in which streams run the operators of a test."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import openreg_runtime

_LARGEST_SEED = (1 << 64) - 1


def check(name: str) -> None:
    """Raises ``ValueError`` unless there is a schedule of this name."""
    seed = re.fullmatch("random:([0-9]+)", name)
    if name in ("eager", "lazy") or (seed and int(seed[1]) <= _LARGEST_SEED):
        return
    raise ValueError(
        f"schedule: name is {name!r}, expected 'eager', 'lazy' or 'random:SEED' with a "
        f"whole number up to {_LARGEST_SEED}, such as 'random:7'"
    )


@contextmanager
def schedule(name: str) -> Iterator[None]:
    """Runs the work of all streams in another order, to find missing waits.

    Waits for all devices at both ends. The schedule applies to the whole process.

    Args:
        name: ``"lazy"`` runs work only when a call waits for it. ``"random:7"`` runs
            streams in an order that the seed 7 determines, and on ranks the
            environment variable ``RANK``. ``"eager"`` is the default.

    Raises:
        ValueError: If the name is another one.
        RuntimeError: If ``OPENREG_LAUNCH_BLOCKING=1`` leaves nothing to order, or with
            the error of work that failed.
    """
    check(name)
    with openreg_runtime.schedule(name):
        yield
