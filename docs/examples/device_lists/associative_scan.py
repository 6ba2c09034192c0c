# SPDX-License-Identifier: BSD-3-Clause
"""An associative scan with a Python function."""

# part: Layers and functions
# place: torch/_higher_order_ops/associative_scan.py: associative_scan
# asks: l.device.type in ("cuda", "xpu")
# means: the default, `combine_mode="pointwise"`, is rejected
# noticed: an error
# way: open `combine_mode="generic"`

import torch
from torch._higher_order_ops.associative_scan import associative_scan

x = torch.ones(4, device="openreg")
try:
    associative_scan(torch.add, x, 0)
except ValueError as error:
    print(error)
# prints: For combine_mode='pointwise', all input tensors need to be on CUDA or XPU
print(associative_scan(torch.add, x, 0, combine_mode="generic").tolist())
# prints: [1.0, 2.0, 3.0, 4.0]
