# SPDX-License-Identifier: BSD-3-Clause
"""Calls that work on the CPU but fail on CUDA."""
# environment: OPENREG_CUDA_LIMITS=1

import torch
from torch.nn import functional as F

counts = torch.ones(2, 2, dtype=torch.int64, device="openreg")
try:
    counts @ counts
except NotImplementedError as error:
    print(error)
    # prints: "addmm_cuda" not implemented for 'Long'

torch.use_deterministic_algorithms(True)
x = torch.rand(1, 1, 5, device="openreg", requires_grad=True)
try:
    F.pad(x, (1, 1), mode="reflect").sum().backward()
except RuntimeError as error:
    print(str(error).partition(" implementation")[0])
    # prints: reflection_pad1d_backward_out_cuda does not have a deterministic

table = torch.rand(3, 4, device="openreg")
rows = F.embedding(torch.tensor([9], device="openreg"), table)
print(rows.shape)
# prints: torch.Size([1, 4])
try:
    rows.tolist()  # a later call reports the assert
except torch.AcceleratorError as error:
    print(str(error).partition(" (")[0])
    # prints: OpenReg error: device-side assert triggered
torch.openreg.reset_device()
print(torch.ones(2, device="openreg").tolist())
# prints: [1.0, 1.0]
