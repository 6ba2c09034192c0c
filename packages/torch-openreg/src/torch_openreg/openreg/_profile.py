# SPDX-License-Identifier: BSD-3-Clause
"""What a profile says of the devices."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from torch_openreg import __version__

if TYPE_CHECKING:
    from torch.profiler import profile

    from openreg_profiler import Utilization


def utilization(prof: profile) -> Utilization:
    """Tells how well the devices were used in a profile, and what would save most.

    ``torch.cuda.utilization`` takes a device instead, and asks its driver.

    Args:
        prof: A ``torch.profiler.profile`` that has ended, with
            ``ProfilerActivity.OPENREG`` among its activities. Made with
            ``with_stack=True`` it knows lines of the program, with ``with_flops=True``
            the operations per second.

    Returns:
        The report, with ``table()``, ``html()`` and ``to_dict()``.

    Raises:
        ImportError: If ``openreg-profiler`` is not installed.
        ValueError: If the profile has no work of the device.
    """
    try:
        package = importlib.import_module("openreg_profiler")
    except ModuleNotFoundError as error:
        if error.name != "openreg_profiler":
            raise
        raise ImportError(
            "utilization needs openreg-profiler, which is not installed: "
            f"pip install openreg-profiler=={__version__}",
            name=error.name,
        ) from error
    report: Utilization = package.utilization(prof)
    return report
