# SPDX-License-Identifier: BSD-3-Clause
"""The default compiler generates code with the classes of the device."""

import torch

x = torch.eye(3, device="openreg")
print(torch.compile(torch.mm)(x, x).trace().item())
# prints: 3.0
# without it: torch._inductor.exc.InductorError: KeyError: 'openreg'
