# SPDX-License-Identifier: BSD-3-Clause
"""Each operator is a range. PyTorch does not check that an observer exists."""

import os

import torch
from torch._C._profiler import ProfilerConfig, ProfilerState, _ExperimentalConfig
from torch.autograd import _disable_profiler, _enable_profiler

import openreg_aten

if (child := os.fork()) == 0:
    options = (False, False, False, False, False, _ExperimentalConfig())
    _enable_profiler(ProfilerConfig(ProfilerState.PRIVATEUSE1, *options), set())
    torch.ones(2, device="openreg").sum()
    _disable_profiler()
    names = [name for name, depth, thread in openreg_aten.take_ranges()]
    os._exit("aten::sum" not in names)
print("exit code:", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
# prints: exit code: 0
# without it: exit code: -11
