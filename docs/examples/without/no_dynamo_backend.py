# SPDX-License-Identifier: BSD-3-Clause
"""A compiler backend named after the device."""

import torch

x = torch.eye(3, device="openreg")
print(torch.compile(torch.mm, backend="openreg")(x, x).trace().item())
# prints: 3.0
# without it: torch._dynamo.exc.InvalidBackend: Invalid backend: 'openreg'
