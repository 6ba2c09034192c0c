# SPDX-License-Identifier: BSD-3-Clause
"""openreg-aten with openreg-inductor: torch.compile with Inductor."""

import torch

import openreg_aten  # noqa: F401  import the backend first

import openreg_inductor  # isort: skip

openreg_inductor.register()
x = torch.eye(3, device="privateuseone")
product = torch.compile(torch.mm)(x, x * 2)
print(product.device, product.trace().item())
# prints: privateuseone:0 6.0
