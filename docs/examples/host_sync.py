# SPDX-License-Identifier: BSD-3-Clause
"""A block that must not wait for the device, but does so twice."""

import re

import torch

from torch_openreg.testing import assert_no_host_sync

x = torch.randn(100, device="openreg")

try:
    with assert_no_host_sync():
        mean = x.mean()
        if mean > 1:
            x -= mean
        x = x.relu()
        x = x[x > 0]
except AssertionError as error:
    for line in str(error).splitlines():
        print(re.sub(r", /.*/", ", ", line))  # without directories
# prints: the host waited for the device 2 times:
# prints:   aten::_local_scalar_dense, host_sync.py:15: if mean > 1:
# prints:   aten::index with a mask, host_sync.py:18: x = x[x > 0]
