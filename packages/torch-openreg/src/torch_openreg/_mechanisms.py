# SPDX-License-Identifier: BSD-3-Clause
"""The integration mechanisms that need no C++: their names and what is left out.

``openreg_aten`` checks the names in ``OPENREG_DISABLE``, since it knows all of them;
here they are only looked up.
"""

from __future__ import annotations

import os
from typing import NamedTuple


class Mechanism(NamedTuple):
    """One way in which PyTorch lets a backend in.

    Attributes:
        name: What ``OPENREG_DISABLE`` calls it.
        summary: What PyTorch calls it.
        source: The file that registers it, in ``packages`` of the project's sources.
        enabled: Whether it was registered in this process.
    """

    name: str
    summary: str
    source: str
    enabled: bool


_DISABLED = frozenset(
    name.strip() for name in os.environ.get("OPENREG_DISABLE", "").split(",")
)

# In the order of their registration: name, summary, file.
_TABLE = (
    ("autoload", 'entry point group "torch.backends"', "__init__.py"),
    ("rename", "torch.utils.rename_privateuse1_backend", "_registration.py"),
    ("device_module", "torch._register_device_module", "_registration.py"),
    (
        "methods",
        "torch.utils.generate_methods_for_privateuse1_backend",
        "_registration.py",
    ),
    ("multiprocessing", "torch.multiprocessing: reductions of tensors", "_sharing.py"),
    ("autocast", "torch.autocast, with the rules of openreg-amp", "_registration.py"),
)
_FOLDER = "torch-openreg/src/torch_openreg"


def is_enabled(name: str) -> bool:
    """Tells whether a mechanism of this package is on, by its name in the table."""
    return name not in _DISABLED


def python_mechanisms() -> list[Mechanism]:
    """Lists the mechanisms of this package in the order of their registration."""
    return [
        Mechanism(name, summary, f"{_FOLDER}/{file}", is_enabled(name))
        for name, summary, file in _TABLE
    ]
