# SPDX-License-Identifier: BSD-3-Clause
"""Tensors have the methods that they have for CUDA."""

import torch

print(torch.ones(2).openreg().is_openreg)
# prints: True
# without it: AttributeError: 'Tensor' object has no attribute 'openreg'
