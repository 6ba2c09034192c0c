# SPDX-License-Identifier: BSD-3-Clause
"""A tensor gets another storage."""

import torch

x = torch.ones(4, device="openreg")
y = torch.empty(0, device="openreg").set_(x.untyped_storage())
print(y.tolist())
# prints: [1.0, 1.0, 1.0, 1.0]
# without it: RuntimeError: Attempted to set the storage of a tensor on device "cpu"
