# SPDX-License-Identifier: BSD-3-Clause
"""Holds the shared library, its C header and its CMake package.

CMake finds the folder through the entry point ``cmake.root`` in a build of
scikit-build; ``python -m openreg_runtime cmake-dir`` prints it for any other.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

__all__ = ["find", "load"]


def find(pattern: str) -> Path:
    """Finds a file or folder of this package.

    An editable install spreads the package over two folders.

    Args:
        pattern: Its place in the package, such as ``include``; may have a ``*``.

    Returns:
        Its absolute path.

    Raises:
        ImportError: If it is not in this package.
    """
    folders = [Path(folder).resolve() for folder in __path__]
    for folder in folders:
        for found in sorted(folder.glob(pattern)):
            return found
    places = ", ".join(map(str, folders))
    raise ImportError(f"{pattern} is not in {places}; install openreg-runtime again")


def load() -> None:
    """Loads the shared library into the process.

    Extension modules that link to it then find it by name, even in editable installs,
    where the relative paths of a wheel are invalid.

    Raises:
        ImportError: If the library is not in this package.
    """
    ctypes.CDLL(str(find(_library_pattern(sys.platform))))


def _library_pattern(platform: str) -> str:
    """Returns the place of the shared library in this package on a platform.

    The name has the version of the ABI, but not on Windows, whose libraries have no
    SONAME.
    """
    match platform:
        case "win32":
            return "lib/openreg.dll"
        case "darwin":
            return "lib/libopenreg.*.dylib"
        case _:
            return "lib/libopenreg.so.*"
