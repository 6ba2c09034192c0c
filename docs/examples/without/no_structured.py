# SPDX-License-Identifier: BSD-3-Clause
"""A structured kernel computes the same in less time; the road to it is counted."""

import torch

x = torch.ones(3, device="openreg")
with torch.openreg.operator_roads() as roads:
    x + x
print(dict(roads.calls))
# prints: {('aten::add.Tensor', 'structured'): 1}
# without it: {('aten::add.Tensor', 'boxed'): 1}
