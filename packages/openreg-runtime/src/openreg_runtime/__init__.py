# SPDX-License-Identifier: BSD-3-Clause
"""A simulated accelerator: devices, memory, streams and events, without PyTorch.

The number of devices and their memory come from the environment; see ``python -m
openreg_runtime info``. An invalid value does not fail the import, but the first use.
"""

from __future__ import annotations

import faulthandler
import sys
from pathlib import Path

import libopenreg

libopenreg.load()

from . import activity, failures  # noqa: E402 - the library must be loaded before
from ._C import (  # noqa: E402
    Buffer,
    Device,
    Event,
    Graph,
    PinnedBuffer,
    Setting,
    Stream,
    current_device,
    device_count,
    register_setting,
    set_device,
    setting,
    settings,
    synchronize,
    version,
)
from ._C import set_device_launcher as _set_device_launcher  # noqa: E402
from ._errors import OpenRegError  # noqa: E402
from ._pinned import pinned  # noqa: E402
from ._schedule import schedule  # noqa: E402
from ._usage import ResourceUsage, resource_usage  # noqa: E402

__all__ = [
    "Buffer",
    "Device",
    "Event",
    "Graph",
    "OpenRegError",
    "PinnedBuffer",
    "ResourceUsage",
    "Setting",
    "Stream",
    "activity",
    "current_device",
    "device_count",
    "failures",
    "is_cuda",
    "pinned",
    "register_setting",
    "resource_usage",
    "schedule",
    "set_device",
    "setting",
    "settings",
    "synchronize",
    "version",
]


def is_cuda() -> bool:
    """Returns whether ``OPENREG_DEVICE`` makes the devices CUDA devices of PyTorch.

    Raises:
        OpenRegError: If its value is invalid.
    """
    return setting("OPENREG_DEVICE").value == "cuda"


def _enable_faulthandler() -> None:
    """Prints the Python line of a host access to device memory."""
    if faulthandler.is_enabled() or sys.stderr is None:
        return
    try:
        faulthandler.enable()
    except (OSError, ValueError, AttributeError):
        return  # standard error is not a file here


def _name_launcher() -> None:
    """Makes this Python start device processes, isolated from the program.

    Runs the file, because a module would import this package, and modules from the
    program's path.
    """
    if sys.executable:  # empty in some programs that embed Python
        launcher = Path(__file__).with_name("device.py")
        _set_device_launcher([sys.executable, "-I", "-S", str(launcher)])


_enable_faulthandler()
_name_launcher()
