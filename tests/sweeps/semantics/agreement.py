# SPDX-License-Identifier: BSD-3-Clause
"""Turns programs that only openreg needs into tests."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable

from openreg_conformance.checks.observing import difference

DEVICE = "openreg"


def program(function: Callable[..., object]) -> Callable[..., None]:
    """Turns a program into a test: a function of a device that returns observations.

    The program may take pytest fixtures and parameters in addition to ``device``.
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def test(**arguments: object) -> None:
        found = difference(function, DEVICE, **arguments)
        if found:
            raise AssertionError(found)

    del test.__wrapped__  # pytest would look for a fixture named device
    test.__signature__ = signature.replace(
        parameters=[p for p in signature.parameters.values() if p.name != "device"]
    )
    return test
