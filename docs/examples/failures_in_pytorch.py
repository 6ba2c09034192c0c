# SPDX-License-Identifier: BSD-3-Clause
"""Injected failures, which PyTorch programs receive as PyTorch errors."""

import torch

from openreg_runtime import failures

x = torch.ones(4, device="openreg")
with failures.inject_failure("launch", first=2):
    y = x + 1
    try:
        y * 2
    except torch.AcceleratorError as error:
        print(str(error).partition("Info: ")[2])
        # prints: injected failure: launch number 2 on device 0
print(y.tolist())  # the device still works
# prints: [2.0, 2.0, 2.0, 2.0]

with failures.inject_failure("malloc", period=1) as failure:
    try:
        torch.empty(2**26, device="openreg")
    except torch.OutOfMemoryError as error:
        print(str(error).partition(".")[0])
        # prints: OpenReg out of memory
print(failure.calls)  # the allocator freed its cache and retried
# prints: 2
