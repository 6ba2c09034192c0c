# SPDX-License-Identifier: BSD-3-Clause
"""quantize_per_tensor calls the device function; operator_paths() shows the path."""

import torch

x = torch.tensor([-1.0, 2.0], device="openreg")
with torch.openreg.operator_paths() as paths:
    y = torch.quantize_per_tensor(x, 0.5, 10, torch.quint8)
print(y.int_repr().tolist(), [path for _, path in paths.calls])
# prints: [8, 14] ['stub']
# without it: [8, 14] ['boxed']
