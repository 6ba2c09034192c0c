# SPDX-License-Identifier: BSD-3-Clause
"""Tensors have the counterparts of their CUDA methods."""

import torch

print(torch.ones(2).openreg().is_openreg)
# prints: True
# without it: AttributeError: 'Tensor' object has no attribute 'openreg'
