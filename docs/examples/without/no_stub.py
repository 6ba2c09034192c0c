# SPDX-License-Identifier: BSD-3-Clause
"""abs asks the device for its function; the road is counted."""

import torch

x = torch.tensor([-1.0, 2.0], device="openreg")
with torch.openreg.operator_roads() as roads:
    y = x.abs()
print(y.tolist(), [road for name, road in roads.calls if name == "aten::abs.out"])
# prints: [1.0, 2.0] ['stub']
# without it: [1.0, 2.0] ['boxed']
