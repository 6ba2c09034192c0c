# SPDX-License-Identifier: BSD-3-Clause
"""All views of a tensor share the name of its storage, also after a resize."""

import torch

x = torch.zeros(2, 3, device="openreg")
row = x[0]
torch.openreg.set_storage_name(x, "weights")
x.untyped_storage().resize_(1 << 20)  # moves to new memory
print(torch.openreg.storage_name(row), torch.openreg.storage_name(x.t().detach()))
# prints: weights weights
# without it: storages cannot have a name
