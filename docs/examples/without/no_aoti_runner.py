# SPDX-License-Identifier: BSD-3-Clause
"""A model that was compiled ahead of time."""

import torch

x = torch.eye(3, device="openreg")
program = torch.export.export(torch.nn.Identity(), (x,))
path = torch._inductor.aoti_compile_and_package(program)
print(torch._inductor.aoti_load_package(path)(x).trace().item())
# prints: 3.0
# without it: RuntimeError: Unsupported device key found: openreg
