# SPDX-License-Identifier: BSD-3-Clause
"""The utilization report of a profile."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from torch_openreg import __version__

if TYPE_CHECKING:
    from torch.profiler import profile

    from openreg_profiler import Utilization


def utilization(prof: profile) -> Utilization:
    """Reports how well a profile used the devices, and the changes that save most.

    Unlike ``torch.cuda.utilization``, it takes a profile and does not query a driver.

    Args:
        prof: A ``torch.profiler.profile`` that has ended, with
            ``ProfilerActivity.OPENREG`` among its activities. Program lines need
            ``with_stack=True``, operations per second ``with_flops=True``.

    Returns:
        The report, with ``table()``, ``html()`` and ``to_dict()``.

    Raises:
        ImportError: If ``openreg-profiler`` is not installed.
        ValueError: If the profile does not contain device work.
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
