# SPDX-License-Identifier: BSD-3-Clause
"""Errors for a library that is missing or has an unsupported version."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from importlib.metadata import version
from typing import Any


def require(library: str, note: str = "") -> None:
    """Checks that a library is installed, by importing it.

    Args:
        library: The name of its package, which is also its name on PyPI.
        note: A note for the user, in parentheses.

    Raises:
        ModuleNotFoundError: If the library is not installed. The error of another
            missing module is not changed.
    """
    try:
        importlib.import_module(library)
    except ModuleNotFoundError as error:
        if error.name != library:
            raise
        raise missing(library, note) from error


def missing(library: str, note: str = "") -> ModuleNotFoundError:
    """Returns the error of a library that is not installed; see :func:`require`."""
    return ModuleNotFoundError(
        f"torch_openreg.integrations.{library} needs the package {library}, which is "
        f"not installed: pip install {library}{note}",
        name=library,
    )


def check_parameters(
    library: str, tested: str, function: str, found: Any, parameters: list[str]
) -> Callable[..., Any]:
    """Checks the parameters of a function that an integration replaces.

    Args:
        library: The library of the function.
        tested: The version of the library that the integration was tested with.
        function: The name of the function, as the error prints it.
        found: The function, or None if the library does not have it.
        parameters: The names of its parameters; a final ``"..."`` allows further ones.

    Returns:
        The function.

    Raises:
        RuntimeError: If the function is missing or has different parameters.
    """
    names = list(inspect.signature(found).parameters) if callable(found) else []
    more = parameters[-1] == "..."
    expected = parameters[:-1] if more else parameters
    if expected != (names[: len(expected)] if more else names):
        has = f"{function}({', '.join(names)})" if names else "no such function"
        raise RuntimeError(
            f"torch_openreg.integrations.{library} replaces {function}"
            f"({', '.join(parameters)}), but {library} {version(library)} has {has}. "
            f"The integration was tested with {library} {tested}."
        )
    function_: Callable[..., Any] = found
    return function_
