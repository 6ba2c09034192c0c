# SPDX-License-Identifier: BSD-3-Clause
"""``torch.profiler``: the activity of CUDA devices, which openreg-profiler records."""

from __future__ import annotations

from typing import Any

import torch
from torch.profiler import ProfilerActivity


def _supported_activities() -> set[ProfilerActivity]:
    return {*_activities_of_build(), ProfilerActivity.CUDA}


def replace() -> None:
    """Adds CUDA to the supported activities, which only builds with CUPTI list.

    Without openreg-profiler, PyTorch measures operators with events.
    """
    from torch_openreg._mechanisms import is_enabled

    if not is_enabled("activity_profiler"):
        return
    modules: Any = (torch._C._autograd, torch.autograd, torch.autograd.profiler)
    for module in (*modules, torch.profiler):
        module._supported_activities = _supported_activities


_activities_of_build: Any = torch._C._autograd._supported_activities
