# SPDX-License-Identifier: BSD-3-Clause
"""Simulated OpenReg devices behind PyTorch's PrivateUse1 extension points.

Importing this package registers every mechanism with PyTorch and gives devices of
type ``privateuseone``, with eager operators, streams, events, random numbers and
memory statistics. The name ``openreg``, autoloading and ``torch.openreg`` come with
torch-openreg; autocast comes with openreg-amp.
"""

from __future__ import annotations

import atexit

# The order matters: a wrong torch and a second backend are refused before any library
# is loaded, and the libraries that ours needs are loaded before it.
from openreg_aten import _versions

_versions.check()

import openreg_runtime  # noqa: F401
import torch  # noqa: F401

from openreg_aten import _privateuse1

_privateuse1.check()

from openreg_aten import _C, _device_module, _mechanisms

_C.enable_mechanisms(_mechanisms.disabled())
_device_module.register()
atexit.register(_C.drain_autograd)

__version__ = _versions.OWN_VERSION
__all__ = ["mechanisms", "take_ranges"]


def mechanisms() -> list[tuple[str, str, str, str, bool]]:
    """Lists the mechanisms that this package can register with PyTorch.

    Returns:
        One row per mechanism, ordered by name: its name, what PyTorch calls it, what
        stops working without it, the source file, and whether it is on
        (``OPENREG_DISABLE`` leaves some out).
    """
    return _C.mechanisms()


def take_ranges() -> list[tuple[str, int, int]]:
    """Takes the ranges that the profiler's state ``PRIVATEUSE1`` has marked.

    Returns:
        One row per operator or ``record_function``, in the order of their beginnings in
        all threads: its name, the number of ranges of its thread that it lies in, and
        PyTorch's number of the thread. At most 1048576 are kept; the later ones are
        dropped.
    """
    return _C.take_ranges()
