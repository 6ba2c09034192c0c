# SPDX-License-Identifier: BSD-3-Clause
"""torch.profiler: operators by name, and times of the device."""

import torch

from openreg_conformance.case import Suite

_suite = Suite(__name__)
case, cases = _suite.case, _suite.cases


@case("profiler")
def operators_are_recorded(device):
    """The profiler records operators by name."""
    from torch.profiler import ProfilerActivity, profile

    x = torch.ones(8, 8, device=device)
    with profile(activities=[ProfilerActivity.CPU]) as it:
        (x @ x).relu()
    names = {each.key for each in it.key_averages()}
    assert {"aten::mm", "aten::relu"} <= names, names


@case("profiler", "accelerator", subject="times of the device", level="sample")
def operators_are_timed_on_the_device(device):
    """The profiler with the device's activity has times of the device."""
    from torch.profiler import ProfilerActivity, profile

    kind = getattr(ProfilerActivity, device.upper(), ProfilerActivity.PrivateUse1)
    x = torch.ones(64, 64, device=device)
    with profile(activities=[ProfilerActivity.CPU, kind]) as it:
        for _ in range(5):
            x = x @ x
        torch.accelerator.synchronize()
    times = [each.device_time_total for each in it.key_averages()]
    assert sum(times) > 0, "no operator has a time of the device"
