# SPDX-License-Identifier: BSD-3-Clause
"""Simulated OpenReg devices behind PyTorch's PrivateUse1 extension points.

With ``OPENREG_DEVICE=cuda``, they use the extension points of CUDA instead, which a
build of PyTorch for the CPU leaves free.

Importing this package registers every mechanism with PyTorch. It adds devices of type
``privateuseone`` with eager operators, streams, events, random numbers and
memory statistics. torch-openreg adds the name ``openreg``, autoloading and
``torch.openreg``. openreg-amp adds autocast.
"""

from __future__ import annotations

import atexit

# The order matters: the checks for a wrong torch version and a second backend come
# before any library is loaded, and the dependencies before the library itself.
from openreg_aten import _versions

_versions.check()

from openreg_aten import _device_type

_device_type.load()

import torch  # noqa: F401

from openreg_aten import _privateuse1

_privateuse1.check()

from openreg_aten import _C, _device_module, _mechanisms

_C.enable_mechanisms(_mechanisms.disabled())
_device_module.register()
atexit.register(_C.drain_autograd)

__version__ = _versions.OWN_VERSION
__all__ = ["device_type", "mechanisms", "take_ranges"]


def device_type() -> str:
    """Returns the device type in PyTorch, such as ``"openreg"`` or ``"cuda"``."""
    return _C.device_type()


def mechanisms() -> list[tuple[str, str, str, str, bool]]:
    """Lists the mechanisms that this package can register with PyTorch.

    Returns:
        One row per mechanism, ordered by name: its name, its PyTorch name, the effect
        of disabling it, the source file, and whether it is on (``OPENREG_DISABLE``
        disables mechanisms).
    """
    return _C.mechanisms()


def take_ranges() -> list[tuple[str, int, int]]:
    """Returns and clears the ranges that the profiler state ``PRIVATEUSE1`` recorded.

    Returns:
        One row per operator or ``record_function``, ordered by start over all threads:
        its name, the number of enclosing ranges of its thread, and PyTorch's thread ID.
        At most 1048576 ranges are kept; later ones are dropped.
    """
    return _C.take_ranges()
