# SPDX-License-Identifier: BSD-3-Clause
"""Sparse weights with two of four values."""

# part: Layers and functions
# place: torch/sparse/semi_structured.py:
#   SparseSemiStructuredTensor._validate_device_dim_dtype_shape
# asks: not original_tensor.is_cuda
# means: `to_sparse_semi_structured` rejects the device
# noticed: an error
# way: closed

import torch
from torch.sparse import to_sparse_semi_structured

try:
    to_sparse_semi_structured(torch.ones(64, 64, device="openreg").half())
except RuntimeError as error:
    print(str(error)[:57])
# prints: Error original_tensor.device= openreg:0 is not supported!
