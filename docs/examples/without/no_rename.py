# SPDX-License-Identifier: BSD-3-Clause
"""The device has a name, and is the accelerator of the process."""

import torch

print(torch.accelerator.current_accelerator())
# prints: openreg
# without it: None
