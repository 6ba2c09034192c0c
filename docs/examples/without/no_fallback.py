# SPDX-License-Identifier: BSD-3-Clause
"""An operator without a composite kernel has no other road to the device."""

import torch

print(torch.empty(0, device="openreg").nonzero().shape)
# prints: torch.Size([0, 1])
# without it: NotImplementedError: Could not run 'aten::nonzero' with arguments from
