# SPDX-License-Identifier: BSD-3-Clause
"""Holds the shared library, its C header and its CMake package.

CMake finds the folder through the entry point ``cmake.root``.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

__all__ = ["load"]


def load() -> None:
    """Loads the shared library into the process.

    Extension modules that link to it then find it by its name, also where the
    relative paths of an installed wheel do not hold (editable installs).

    Raises:
        ImportError: If the library is not in this package.
    """
    name = "libopenreg.dylib" if sys.platform == "darwin" else "libopenreg.so"
    folders = [Path(folder) / "lib" for folder in __path__]
    for folder in folders:
        if (folder / name).exists():
            ctypes.CDLL(str(folder / name))
            return
    places = ", ".join(map(str, folders))
    raise ImportError(f"{name} is not in {places}; install openreg-runtime again")
