# SPDX-License-Identifier: BSD-3-Clause
"""Runs a script under the profiler, for ``python -m torch_openreg profile``."""

from __future__ import annotations

import json
import runpy
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from openreg_aten._C import device_type
from openreg_profiler._utilization import Utilization, utilization


def run(
    script: Path,
    arguments: Sequence[str] = (),
    *,
    json_file: Path | None = None,
    html_file: Path | None = None,
) -> Utilization:
    """Runs a script like ``python script.py`` and returns a report.

    Args:
        script: The script, which may end with ``sys.exit()``.
        arguments: The script's arguments, ``sys.argv[1:]``.
        json_file: The file for the report as JSON.
        html_file: The file for the report as a page with plots.

    Returns:
        The report.

    Raises:
        ValueError: If the script has not used a device.
    """
    key: str = torch._C._dispatch_key_for_device(device_type())
    of_device = getattr(ProfilerActivity, key)  # CUDA or PrivateUse1
    before = sys.argv, sys.path[0]
    sys.argv, sys.path[0] = [str(script), *arguments], str(script.parent)
    result = profile(
        activities=[ProfilerActivity.CPU, of_device],
        record_shapes=True,
        profile_memory=True,
        with_stack=True,
        with_flops=True,
    )
    try:
        with result:
            try:
                runpy.run_path(str(script), run_name="__main__")
            except SystemExit as end:
                if end.code not in (None, 0):
                    warnings.warn(f"{script} has ended with {end.code!r}", stacklevel=2)
    finally:
        sys.argv, sys.path[0] = before
    report = utilization(result)
    if json_file is not None:
        json_file.write_text(json.dumps(report.to_dict(), indent=1), encoding="utf-8")
    if html_file is not None:
        html_file.write_text(report.html(), encoding="utf-8")
    return report
