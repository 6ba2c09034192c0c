# SPDX-License-Identifier: BSD-3-Clause
"""A float16 matrix product runs the boxed kernel, which computes in float32."""

import torch

x = torch.ones(2, 2, dtype=torch.float16, device="openreg")
with torch.openreg.operator_paths() as paths:
    x @ x
print(list(paths.calls))
# prints: [('aten::mm', 'boxed')]
# without it: [('aten::mm', 'typed')]
