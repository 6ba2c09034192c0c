# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch asks the hooks for generators, among much else."""

import torch

print(torch.Generator("openreg").device)
# prints: openreg:0
# without it: RuntimeError: Please register PrivateUse1HooksInterface
