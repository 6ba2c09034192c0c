# SPDX-License-Identifier: BSD-3-Clause
"""The first tensor looks up torch.openreg to start the devices."""

import torch

print(torch.ones(2, device="openreg").device)
# prints: openreg:0
# without it: ModuleNotFoundError: No module named 'torch.openreg'
