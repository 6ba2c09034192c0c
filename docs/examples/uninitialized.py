# SPDX-License-Identifier: BSD-3-Clause
"""Unwritten memory that shows in results."""

# environment: OPENREG_UNINITIALIZED=nan

import torch

gradient = torch.empty(2, 3, device="openreg")
gradient[0] = 1  # and nobody writes the second row
print(gradient.sum().item())
# prints: nan
rows = torch.empty(2, dtype=torch.int64, device="openreg")
try:
    torch.ones(5, device="openreg")[rows].tolist()
except IndexError as error:
    print(error)
    # prints: index 9223231297218904063 is out of bounds for dimension 0 with size 5
