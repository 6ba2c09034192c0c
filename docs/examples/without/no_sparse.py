# SPDX-License-Identifier: BSD-3-Clause
"""Sparse COO tensors, such as the gradient of an embedding with sparse=True."""

import torch

layer = torch.nn.Embedding(4, 2, sparse=True).to("openreg")
layer(torch.tensor([1, 3, 1], device="openreg")).sum().backward()
print(layer.weight.grad.coalesce().values().tolist())
# prints: [[2.0, 2.0], [1.0, 1.0]]
# without it: NotImplementedError: Could not run 'aten::_sparse_coo_tensor_with
