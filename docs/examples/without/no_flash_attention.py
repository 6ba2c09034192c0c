# SPDX-License-Identifier: BSD-3-Clause
"""Flash attention under the name for which DTensor has sharding rules."""

import torch

q = torch.randn(1, 1, 4, 8, device="openreg")
flash_attention = torch.ops.aten._scaled_dot_product_flash_attention
output, logsumexp, *_ = flash_attention(q, q, q, is_causal=True)
print(logsumexp.shape)
# prints: torch.Size([1, 1, 4])
# without it: NotImplementedError: Could not run 'aten::_scaled_dot_product
