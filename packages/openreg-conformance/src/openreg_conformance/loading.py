# SPDX-License-Identifier: BSD-3-Clause
"""Loads a device into a process, including processes that a case starts."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Modules to import after torch, separated by spaces. Processes that cases start read
# it, too.
IMPORTS = "CONFORMANCE_IMPORTS"


class UnusableError(Exception):
    """Raised with the reason why a device cannot be checked."""


def environment(imports: Sequence[str]) -> dict[str, str]:
    """Returns the environment for processes that import modules after torch.

    Args:
        imports: Module names, and files whose names end in ``.py``.
    """
    variables = dict(os.environ)
    files = [Path(each).resolve() for each in imports if each.endswith(".py")]
    folders = [str(each.parent) for each in files]
    before = variables.get("PYTHONPATH")
    if folders:
        variables["PYTHONPATH"] = os.pathsep.join([*folders, before or ""]).strip(":")
    variables[IMPORTS] = " ".join(module_names(imports))
    return variables


def module_names(imports: Sequence[str]) -> list[str]:
    """Returns the modules of ``imports``; a file is a module of the same name."""
    return [Path(each).stem if each.endswith(".py") else each for each in imports]


def load(device: str, imports: Sequence[str]) -> dict[str, Any]:
    """Loads a device and returns its description.

    Args:
        device: Its type, such as ``"cuda"``.
        imports: The modules to import after torch.

    Raises:
        UnusableError: If the device cannot be used.
    """
    try:
        import torch

        for name in module_names(imports):
            importlib.import_module(name)
    except Exception as error:
        raise UnusableError(
            f"its package cannot be imported: {_line(error)}"
        ) from error
    try:
        parsed = torch.device(device)
    except RuntimeError as error:
        raise UnusableError(
            f"torch does not recognize it; is its package installed, or named with "
            f"--import? {_line(error)}"
        ) from error
    if parsed.index is not None:
        raise UnusableError(f"expected a type without an index: {parsed.type}")
    if device == "meta":
        raise UnusableError("its tensors have no values")
    module = getattr(torch, device, None)
    if module is None and device != torch._C._get_privateuse1_backend_name():
        raise UnusableError(
            f"torch has no module torch.{device}; is its package installed, or named "
            "with --import?"
        )
    if module is not None and not getattr(module, "is_available", lambda: True)():
        raise UnusableError(f"torch.{device}.is_available() is False")
    return {
        "torch": torch.__version__,
        "python": sys.version.split()[0],
        "device_name": _name(module) or device,
    }


def _name(module: Any) -> str:
    try:
        return str(module.get_device_name())
    except Exception:  # the name is only informative, and cases check it
        return ""


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
