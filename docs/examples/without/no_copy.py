# SPDX-License-Identifier: BSD-3-Clause
"""Data moves to the device and back."""

import torch

print(torch.ones(2).to("openreg").tolist())
# prints: [1.0, 1.0]
# without it: NotImplementedError: Could not run 'aten::_copy_from'
