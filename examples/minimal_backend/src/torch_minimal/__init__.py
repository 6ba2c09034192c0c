# SPDX-License-Identifier: BSD-3-Clause
"""The device ``minimal`` for PyTorch."""

from __future__ import annotations

# torch may be imported first or this package, and each imports the other while that is
# half imported. So what needs torch is in a module of its own.


def _autoload() -> None:
    """Registers the device; ``import torch`` calls it (see pyproject.toml)."""
    from torch_minimal import _registration  # noqa: F401


_autoload()
