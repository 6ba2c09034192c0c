# SPDX-License-Identifier: BSD-3-Clause
"""A sparse matrix in CSR format times a dense vector."""

import warnings

import torch

warnings.simplefilter("ignore")  # the format is in beta state
matrix = torch.eye(3, device="openreg").mul(2).to_sparse_csr()
print((matrix @ torch.ones(3, device="openreg")).tolist())
# prints: [2.0, 2.0, 2.0]
# without it: NotImplementedError: Could not run 'aten::addmv.out' with arguments from
