# SPDX-License-Identifier: BSD-3-Clause
"""Attention runs the same fused kernel as on the CPU."""

import torch

q = torch.randn(1, 1, 4, 8, device="openreg", requires_grad=True)
y = torch.nn.functional.scaled_dot_product_attention(q, q, q)
print(y.grad_fn.name())
# prints: ScaledDotProductFlashAttentionForCpuBackward0
# without it: UnsafeViewBackward0
