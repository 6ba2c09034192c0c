# SPDX-License-Identifier: BSD-3-Clause
"""A typed kernel has less overhead; operator_paths() shows the path."""

import torch

x = torch.ones(3, 3, device="openreg")
with torch.openreg.operator_paths() as paths:
    x @ x
print(dict(paths.calls))
# prints: {('aten::mm', 'typed'): 1}
# without it: {('aten::mm', 'boxed'): 1}
