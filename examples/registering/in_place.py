# SPDX-License-Identifier: BSD-3-Clause
"""Uses in_place.cpp: in-place operators that do and do not notify autograd."""

from pathlib import Path

import torch

# [docs: library]
torch.ops.load_library(Path(__file__).parent / "build" / "in_place.so")
# [docs: end]

for op in (torch.ops.demo.negate_, torch.ops.demo.negate_unmarked_):
    weight = torch.tensor([1.0, 2.0], device="openreg", requires_grad=True)
    x = weight * 3
    y = x * x  # keeps x for the backward pass
    with torch.no_grad():
        op(x)
    print(x.tolist(), "version", x._version)
    try:
        y.sum().backward()
        print("a wrong gradient:", weight.grad.tolist())
    except RuntimeError as error:
        print(str(error).partition(" by ")[0])
# prints: [-3.0, -6.0] version 1
# prints: one of the variables needed for gradient computation has been modified
# prints: [-3.0, -6.0] version 0
# prints: a wrong gradient: [-18.0, -36.0]
# without library: '_OpNamespace' 'demo' object has no attribute 'negate_'
