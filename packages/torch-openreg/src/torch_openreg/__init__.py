# SPDX-License-Identifier: BSD-3-Clause
"""The ``openreg`` device for PyTorch: importing torch, or this package, is enough.

``torch`` and ``torch_openreg`` import each other, whichever is imported first, while
the first one is only partly imported. Therefore this module does not need torch at
module level, defines both functions before it imports torch, and ignores a second
registration.
"""

from __future__ import annotations

from importlib.metadata import version

__all__ = ["__version__", "register"]

__version__ = version("torch-openreg")


def register() -> None:
    """Registers the ``openreg`` device with PyTorch; later calls do nothing.

    Importing the package calls it, unless ``OPENREG_DISABLE`` names ``autoload``.

    Raises:
        ImportError: If ``openreg-aten`` is not installed.
        RuntimeError: If another backend uses the PrivateUse1 device, ``openreg-aten``
            was built for another version of PyTorch, or ``OPENREG_SANITIZER`` has an
            invalid value.
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
