# SPDX-License-Identifier: BSD-3-Clause
"""The ``openreg`` device for PyTorch: importing torch, or this package, is enough.

Entry and re-entry: whichever of ``torch`` and ``torch_openreg`` is imported first, each
imports the other while itself still half imported. So nothing here needs torch at
module level, both functions are defined before torch is touched, and registering twice
is registering once.
"""

from __future__ import annotations

from importlib.metadata import version

__all__ = ["__version__", "register"]

__version__ = version("torch-openreg")


def register() -> None:
    """Registers the ``openreg`` device with PyTorch; later calls do nothing.

    Importing the package does this already, unless ``OPENREG_DISABLE`` names
    ``autoload``.

    Raises:
        ImportError: If ``openreg-aten`` is not installed.
        RuntimeError: If another backend has taken the PrivateUse1 device, PyTorch is of
            another version than ``openreg-aten`` was built for, or
            ``OPENREG_SANITIZER`` has a wrong value.
    """
    import torch  # noqa: F401  (may come back to _autoload() before it returns)

    from torch_openreg import _registration

    _registration.register()


def _autoload() -> None:
    """Registers the device when torch is imported (entry point ``torch.backends``)."""
    from torch_openreg import _mechanisms

    if _mechanisms.is_enabled("autoload"):
        register()


_autoload()
