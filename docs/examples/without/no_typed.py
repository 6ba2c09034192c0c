# SPDX-License-Identifier: BSD-3-Clause
"""A typed kernel computes the same in less time; the road to it is counted."""

import torch

x = torch.ones(3, 3, device="openreg")
with torch.openreg.operator_roads() as roads:
    x @ x
print(dict(roads.calls))
# prints: {('aten::mm', 'typed'): 1}
# without it: {('aten::mm', 'boxed'): 1}
