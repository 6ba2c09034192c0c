# SPDX-License-Identifier: BSD-3-Clause
"""Two surprises with a kernel that is written in Python."""

import torch

seen = []


def mul(x, y):
    """Multiplies a copy of x in place."""
    seen.append(type(y).__name__)
    return x.clone().mul_(y)


library = torch.library.Library("aten", "IMPL")
library.impl("mul.Tensor", mul, "PrivateUse1")

# The schema declares a tensor, but a number from the caller arrives as a number.
x = torch.tensor([5.0, 7.0], device="openreg")
print((x * x).tolist(), (x * 3).tolist(), seen)
# prints: [25.0, 49.0] [15.0, 21.0] ['Tensor', 'int']

# Deleting the library removes the kernel and restores the previous kernel.
del library
print((x * x).tolist(), seen)
# prints: [25.0, 49.0] ['Tensor', 'int']
