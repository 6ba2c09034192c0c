# SPDX-License-Identifier: BSD-3-Clause
"""torch.save keeps the flags that the backend attached to a tensor."""

import io

import torch

x = torch.ones(2, device="openreg")
torch.openreg.set_tensor_flags(x, {"packed": True})
file = io.BytesIO()
torch.save(x, file)
file.seek(0)
print(torch.openreg.tensor_flags(torch.load(file)))
# prints: {'packed': True}
# without it: {}
