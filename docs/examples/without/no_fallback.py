# SPDX-License-Identifier: BSD-3-Clause
"""An operator without a composite kernel runs through the fallback."""

import torch

print(torch.empty(0, dtype=torch.int64, device="openreg").bincount().shape)
# prints: torch.Size([0])
# without it: NotImplementedError: Could not run 'aten::bincount' with arguments from
