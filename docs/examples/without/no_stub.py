# SPDX-License-Identifier: BSD-3-Clause
"""abs calls the device function; operator_paths() shows the path."""

import torch

x = torch.tensor([-1.0, 2.0], device="openreg")
with torch.openreg.operator_paths() as paths:
    y = x.abs()
print(y.tolist(), [path for name, path in paths.calls if name == "aten::abs.out"])
# prints: [1.0, 2.0] ['stub']
# without it: [1.0, 2.0] ['boxed']
