# SPDX-License-Identifier: BSD-3-Clause
"""Reads and validates ``OPENREG_DISABLE``, which disables mechanisms by name.

The runtime splits the variable. A package that registers mechanisms from Python lists
them as entry points of the group ``openreg.mechanisms``.
"""

from __future__ import annotations

from importlib.metadata import entry_points

import openreg_runtime
from openreg_aten import _C


def disabled() -> set[str]:
    """Returns the names in ``OPENREG_DISABLE``.

    Raises:
        RuntimeError: If no installed package has a mechanism with one of the names.
    """
    setting = openreg_runtime.setting("OPENREG_DISABLE")
    names = set(setting.names)
    if names:  # reading the metadata of all packages takes time
        known = {name for name, *_ in _C.mechanisms()}
        known |= {entry.name for entry in entry_points(group="openreg.mechanisms")}
        for name in sorted(names - known):
            msg = (
                f"environment variable {setting.name}='{setting.value}' is not valid: "
                f"expected names from {', '.join(sorted(known))}; "
                f"'{name}' is not a mechanism"
            )
            raise RuntimeError(msg)
    return names
