# SPDX-License-Identifier: BSD-3-Clause
"""The device ``minimal`` for PyTorch."""

from __future__ import annotations

# Either torch or this package may be imported first, and each imports the other while
# it is still being imported. Code that needs torch is therefore in a separate module.


def _autoload() -> None:
    """Registers the device; ``import torch`` calls it (see pyproject.toml)."""
    from torch_minimal import _registration  # noqa: F401


_autoload()
