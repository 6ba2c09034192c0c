# SPDX-License-Identifier: BSD-3-Clause
"""Uses custom_abs.cpp: a new operator in a new namespace."""

from pathlib import Path

import torch

# [docs: library]
torch.ops.load_library(Path(__file__).parent / "build" / "custom_abs.so")
# [docs: end]

x = torch.tensor([-1.0, 2.0, -3.0], dtype=torch.float64, device="openreg")
print(torch.ops.demo.custom_abs(x).cpu().equal(x.cpu().abs()))
# prints: True
# without library: '_OpNamespace' 'demo' object has no attribute 'custom_abs'

print(torch.ops.demo.custom_abs(x.to("meta")).shape)
# prints: torch.Size([3])

x.requires_grad_()
print(torch.autograd.gradcheck(torch.ops.demo.custom_abs, x))
# prints: True

op = torch.ops.demo.custom_abs.default
print(torch.library.opcheck(op, (x,), test_utils=("test_schema", "test_faketensor")))
# prints: {'test_schema': 'SUCCESS', 'test_faketensor': 'SUCCESS'}
