# SPDX-License-Identifier: BSD-3-Clause
"""Uses stable_abi.cpp: an operator that is compiled once for several torch versions."""

from pathlib import Path

import torch

# [docs: library]
torch.ops.load_library(Path(__file__).parent / "build" / "stable_abi.so")
# [docs: end]

x = torch.tensor([-1.0, 2.0, -3.0], device="openreg")
print(torch.ops.demo.stable_abs(x).cpu().equal(x.cpu().abs()))
# prints: True
# without library: '_OpNamespace' 'demo' object has no attribute 'stable_abs'

try:
    torch.ops.demo.stable_abs(x.double())
except RuntimeError as error:
    print(str(error).splitlines()[0].rpartition(", ")[2])
# prints: stable_abs: expected a contiguous tensor of float32
