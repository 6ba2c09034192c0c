# SPDX-License-Identifier: BSD-3-Clause
"""The package's environment variables, which the runtime reads and checks.

This may run before torch is imported.
"""

from __future__ import annotations

from importlib.metadata import version

try:
    import openreg_runtime
except ModuleNotFoundError as error:
    if error.name != "openreg_runtime":
        raise
    raise ImportError(
        "torch-openreg needs openreg-runtime, which is not installed: "
        f"pip install openreg-runtime=={version('torch-openreg')}",
        name=error.name,
    ) from error

openreg_runtime.register_setting(
    "OPENREG_SANITIZER",
    "0",
    "switch",
    "1 finds accesses without an order, and reads of unwritten memory, from the import "
    "of torch on",
)
openreg_runtime.register_setting(
    "OPENREG_SANITIZER_UNWRITTEN",
    "1",
    "switch",
    "0 makes the sanitizer ignore reads of unwritten memory",
)


def is_disabled(mechanism: str) -> bool:
    """Returns whether ``OPENREG_DISABLE`` leaves out a mechanism."""
    return mechanism in openreg_runtime.setting("OPENREG_DISABLE").names


def is_sanitized() -> bool:
    """Returns whether ``OPENREG_SANITIZER`` enables the sanitizer.

    Raises:
        OpenRegError: If its value is invalid.
    """
    return openreg_runtime.setting("OPENREG_SANITIZER").number == 1


def looks_for_unwritten() -> bool:
    """Returns whether the sanitizer reports reads of unwritten memory.

    Raises:
        OpenRegError: If ``OPENREG_SANITIZER_UNWRITTEN`` has an invalid value.
    """
    return openreg_runtime.setting("OPENREG_SANITIZER_UNWRITTEN").number == 1


def profile_name() -> str:
    """Returns ``OPENREG_PROFILE``: ``none``, a name, or a file."""
    return openreg_runtime.setting("OPENREG_PROFILE").value
