# SPDX-License-Identifier: BSD-3-Clause
"""Uses per_operator_fallback.cpp: a device kernel, or a CPU kernel on copies."""

from pathlib import Path

import torch

# [docs: library]
torch.ops.load_library(Path(__file__).parent / "build" / "per_operator_fallback.so")
# [docs: end]

has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
names = ("aten::trace", "aten::bincount")
print([has_kernel(name, "PrivateUse1") for name in names])
# prints: [True, True]
# without library: [False, False]

x = torch.arange(12.0, device="openreg").reshape(3, 4)
for each in (x, x.t(), x.double(), x.to(torch.int32)):  # the last two run on the CPU
    y = each.trace()
    print(y.device, y.dtype, y.cpu().equal(each.cpu().trace()))
# prints: openreg:0 torch.float32 True
# prints: openreg:0 torch.float32 True
# prints: openreg:0 torch.float64 True
# prints: openreg:0 torch.int64 True

counts = torch.tensor([0, 3, 3], device="openreg").bincount()
print(counts)
# prints: tensor([1, 0, 0, 2], device='openreg:0')
