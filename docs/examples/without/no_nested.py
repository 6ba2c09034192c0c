# SPDX-License-Identifier: BSD-3-Clause
"""A nested tensor: two rows of different lengths."""

import warnings

import torch

warnings.simplefilter("ignore")  # nested tensors are a prototype
rows = [torch.ones(2, device="openreg"), torch.ones(3, device="openreg")]
nested = torch.nested.as_nested_tensor(rows)
print(torch.nested.to_padded_tensor(nested * 2, 0.0).tolist())
# prints: [[2.0, 2.0, 0.0], [2.0, 2.0, 2.0]]
# without it: NotImplementedError: Could not run 'aten::mul.Tensor' with arguments from
