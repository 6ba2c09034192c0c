# SPDX-License-Identifier: BSD-3-Clause
"""An operator with its own CPU kernel and a composite one has the CPU's rounding."""

import torch

torch.manual_seed(0)
x, weight = torch.randn(64, 6, 43), torch.randn(6)
on_cpu = torch.nn.functional.group_norm(x, 2, weight)
y = torch.nn.functional.group_norm(x.to("openreg"), 2, weight.to("openreg"))
print(y.cpu().equal(on_cpu))
# prints: True
# without it: False
