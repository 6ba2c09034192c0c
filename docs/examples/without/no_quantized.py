# SPDX-License-Identifier: BSD-3-Clause
"""A quantized tensor: integers, and the numbers that they represent."""

import torch

x = torch.tensor([-1.0, 2.0], device="openreg")
y = torch.quantize_per_tensor(x, scale=0.5, zero_point=10, dtype=torch.quint8)
print(torch.relu(y).int_repr().tolist(), torch.relu(y).dequantize().tolist())
# prints: [10, 14] [0.0, 2.0]
# without it: NotImplementedError: Could not run 'aten::relu' with arguments from the
