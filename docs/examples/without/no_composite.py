# SPDX-License-Identifier: BSD-3-Clause
"""An operator with a CPU kernel and a composite one rounds as on the CPU."""

import torch

torch.manual_seed(0)
x = torch.randn(64, 43)
power_sum = torch.ops.aten.linalg__powsum  # sum(abs(x) ** 3) of each row
on_cpu = power_sum(x, 3.0, [1])
y = power_sum(x.to("openreg"), 3.0, [1])
print(y.cpu().equal(on_cpu))
# prints: True
# without it: False
