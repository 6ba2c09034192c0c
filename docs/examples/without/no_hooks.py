# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch gets generators from the hooks."""

import torch

print(torch.Generator("openreg").device)
# prints: openreg:0
# without it: RuntimeError: Please register PrivateUse1HooksInterface
