# SPDX-License-Identifier: BSD-3-Clause
"""What surprises in kernels that are written in Python."""

import torch

seen = []


def mul(x, y):
    """Multiplies in place of a copy."""
    seen.append(type(y).__name__)
    return x.clone().mul_(y)


library = torch.library.Library("aten", "IMPL")
library.impl("mul.Tensor", mul, "PrivateUse1")

# The schema has a tensor, and the kernel gets a number if the caller wrote one.
x = torch.tensor([5.0, 7.0], device="openreg")
print((x * x).tolist(), (x * 3).tolist(), seen)
# prints: [25.0, 49.0] [15.0, 21.0] ['Tensor', 'int']

# The kernel goes with its library, and the one before it is back.
del library
print((x * x).tolist(), seen)
# prints: [25.0, 49.0] ['Tensor', 'int']
