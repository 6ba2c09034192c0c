# SPDX-License-Identifier: BSD-3-Clause
"""Selects the libraries that were built for the installed torch.

PyTorch's C++ interface changes with each minor version. A wheel for users therefore has
one folder of libraries for each minor version that it supports, such as ``torch_2_14``;
a build from source has one folder.
"""

from __future__ import annotations

from collections.abc import MutableSequence
from pathlib import Path

_PREFIX = "torch_"
_PACKAGE = __name__.rpartition(".")[0].replace("_", "-")


def select(path: MutableSequence[str], torch: str) -> None:
    """Adds the folder of libraries for a torch to the path of this package.

    Args:
        path: ``__path__`` of the package.
        torch: The installed version, such as ``"2.14.1+cpu"``. A package reads it from
            the metadata, because the import of torch may import the package again.

    Raises:
        RuntimeError: If the package has no libraries, or none for this minor version.
    """
    built: dict[str, Path] = {}
    for entry in path:
        for folder in sorted(Path(entry).glob(f"{_PREFIX}[0-9]*_[0-9]*")):
            built[folder.name.removeprefix(_PREFIX).replace("_", ".")] = folder
    if not built:
        raise RuntimeError(f"{_PACKAGE} has no libraries. Install it again.")
    minor = ".".join(torch.split(".")[:2])
    if minor not in built:
        versions = sorted(built, key=lambda each: [*map(int, each.split("."))])
        raise RuntimeError(
            f"{_PACKAGE} was built for torch {', '.join(versions)}, but torch {torch} "
            f'is installed. Install a supported torch: pip install "torch=='
            f'{versions[-1]}.*"; or build {_PACKAGE} again for torch {torch}.'
        )
    path.append(str(built[minor]))
