# SPDX-License-Identifier: BSD-3-Clause
"""Rejects versions of torch and openreg-runtime that do not match the build."""

from __future__ import annotations

from importlib import metadata

import openreg_aten
from openreg_aten import _libraries

OWN_VERSION = metadata.version("openreg-aten")


def check() -> None:
    """Selects the libraries for the installed torch, and compares openreg-runtime.

    Raises:
        RuntimeError: If the package has no libraries for the installed torch, or the
            version of openreg-runtime differs from this package.
        ModuleNotFoundError: If openreg-runtime is missing.
    """
    # Reads the metadata: importing a different torch could autoload another backend.
    _libraries.select(openreg_aten.__path__, metadata.version("torch"))
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
