# SPDX-License-Identifier: BSD-3-Clause
"""Tensor flags, which pickling keeps and cloning drops."""

import pickle

import torch

x = torch.ones(2, device="openreg")
torch.openreg.set_tensor_flags(x, {"packed": True})
print(torch.openreg.tensor_flags(pickle.loads(pickle.dumps(x))))
# prints: {'packed': True}
print(torch.openreg.tensor_flags(x.detach()), torch.openreg.tensor_flags(x.clone()))
# prints: {'packed': True} {}
