# SPDX-License-Identifier: BSD-3-Clause
"""openreg-aten without torch-openreg: a device named privateuseone."""
# environment: TORCH_DEVICE_BACKEND_AUTOLOAD=0

import torch

import openreg_aten  # noqa: F401

x = torch.ones(2, device="privateuseone")
print(x + x, hasattr(torch, "openreg"))
# prints: tensor([2., 2.], device='privateuseone:0') False

# The device was used before it was renamed, so it keeps its default name.
print(torch.accelerator.current_accelerator(), torch.ones(2).pin_memory().is_pinned())
# prints: privateuseone True
