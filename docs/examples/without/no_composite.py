# SPDX-License-Identifier: BSD-3-Clause
"""An operator with its own CPU kernel and a composite one has the CPU's rounding."""

import torch

torch.manual_seed(0)
x, weight = torch.randn(64, 257), torch.randn(257)
on_cpu = torch.nn.functional.layer_norm(x, (257,), weight)
y = torch.nn.functional.layer_norm(x.to("openreg"), (257,), weight.to("openreg"))
print(y.cpu().equal(on_cpu))
# prints: True
# without it: False
