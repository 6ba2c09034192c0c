# SPDX-License-Identifier: BSD-3-Clause
"""Refuses a torch or an openreg-runtime that the compiled code was not built for."""

from __future__ import annotations

from importlib import metadata

from openreg_aten import _build

OWN_VERSION = metadata.version("openreg-aten")


def check() -> None:
    """Compares the installed packages with those of the build.

    Raises:
        RuntimeError: If torch is of another version than the build's, or
            openreg-runtime is of another version than this package.
        ModuleNotFoundError: If openreg-runtime is missing.
    """
    # From the metadata: importing another torch could load a backend of its own.
    _build.check_torch(metadata.version("torch"))
    try:
        runtime = metadata.version("openreg-runtime")
    except metadata.PackageNotFoundError as error:
        msg = (
            "openreg-aten needs openreg-runtime, which is not installed: "
            f"pip install openreg-runtime=={OWN_VERSION}"
        )
        raise ModuleNotFoundError(msg, name="openreg_runtime") from error
    if runtime != OWN_VERSION:
        msg = (
            f"openreg-aten {OWN_VERSION} needs openreg-runtime {OWN_VERSION}, but "
            f"{runtime} is installed: pip install openreg-runtime=={OWN_VERSION}"
        )
        raise RuntimeError(msg)
