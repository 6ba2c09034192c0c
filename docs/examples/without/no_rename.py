# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch knows the name of the device, and has an accelerator."""

import torch

print(torch.accelerator.current_accelerator())
# prints: openreg
# without it: None
