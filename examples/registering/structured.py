# SPDX-License-Identifier: BSD-3-Clause
"""Uses structured.cpp: PyTorch's checks with a device kernel."""

from pathlib import Path

import torch

# [docs: library]
torch.ops.load_library(Path(__file__).parent / "build" / "structured.so")
# [docs: end]

table = torch._C._dispatch_dump_table("aten::tril")
print("structured.cpp" in table)
# prints: True
# without library: False

x = torch.randn(2, 3, 4, dtype=torch.float64, device="openreg")
out = torch.empty(0, dtype=torch.float64, device="openreg")
torch.tril(x, 1, out=out)
for result in (x.tril(1), out, x.clone().tril_(1)):
    print(result.shape, result.cpu().equal(x.cpu().tril(1)))
# prints: torch.Size([2, 3, 4]) True
# prints: torch.Size([2, 3, 4]) True
# prints: torch.Size([2, 3, 4]) True

print(torch.autograd.gradcheck(torch.tril, x.requires_grad_()))
# prints: True

# PyTorch's meta function checks the arguments.
try:
    torch.ones(3, device="openreg").tril()
except RuntimeError as error:
    print(error)
# prints: tril: input tensor must have at least 2 dimensions
