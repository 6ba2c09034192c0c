# SPDX-License-Identifier: BSD-3-Clause
"""Makes tests of programs that are for openreg alone."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable

from openreg_conformance.checks.observing import difference

DEVICE = "openreg"


def program(function: Callable[..., object]) -> Callable[..., None]:
    """Makes a test of a program: a function of a device that returns what it observes.

    The program may take pytest fixtures and parameters in addition to ``device``.
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def test(**arguments: object) -> None:
        found = difference(function, DEVICE, **arguments)
        if found:
            raise AssertionError(found)

    del test.__wrapped__  # pytest would ask for the device
    test.__signature__ = signature.replace(
        parameters=[p for p in signature.parameters.values() if p.name != "device"]
    )
    return test
