# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch calls the observer without looking if there is one."""

import os

import torch
from torch._C._autograd import _enable_profiler
from torch._C._profiler import ProfilerConfig, ProfilerState, _ExperimentalConfig

if (child := os.fork()) == 0:
    options = (False, False, False, False, False, _ExperimentalConfig())
    _enable_profiler(ProfilerConfig(ProfilerState.PRIVATEUSE1, *options), set())
    torch.ones(2).sum()
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
# prints: -11
