# SPDX-License-Identifier: BSD-3-Clause
"""The order in which streams run their work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ._C import device_count, get_schedule, set_schedule, synchronize
from ._errors import OpenRegError


@contextmanager
def schedule(name: str) -> Iterator[None]:
    """Runs the work of all streams in another order.

    Waits for all devices at both ends. The schedule applies to the whole process.

    Args:
        name: ``"eager"``: streams run their work as soon as possible. ``"lazy"``: work
            runs only when a call waits for it. ``"random:SEED"``: streams run in an
            order that the seed determines, and on ranks the environment variable
            ``RANK``.

    Raises:
        OpenRegError: If the name is another one, if ``OPENREG_LAUNCH_BLOCKING=1``
            leaves nothing to order, or with the error of work that failed.
    """
    _wait_for_all()
    before = get_schedule()
    set_schedule(name)
    try:
        yield
    finally:
        try:
            _wait_for_all()
        finally:
            set_schedule(before)


def _wait_for_all() -> None:
    """Waits for every device, then raises the first error."""
    errors = []
    for device in range(device_count()):
        try:
            synchronize(device)
        except OpenRegError as error:
            errors.append(error)
    if errors:
        raise errors[0]
