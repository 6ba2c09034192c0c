# SPDX-License-Identifier: BSD-3-Clause
"""A buffer whose last rows nobody writes before they are read."""

import re

import torch
from torch.openreg import sanitizer

try:
    with sanitizer.enabled():
        x = torch.empty(8, 4, device="openreg")
        for row in range(6):
            x[row] = row
        y = x.softmax(1)
except sanitizer.UninitializedReadError as error:
    # without directories and addresses
    print(re.sub(r"/\S*/|0x\w+", "...", str(error)))
# prints: read of unwritten memory at address ...:
# prints:   aten::_softmax(Tensor self, int dim, bool half_to_float) -> Tensor
# prints:     reading from self, on the default stream of openreg:0
# prints:     ...unwritten.py:14: y = x.softmax(1)
# prints: 8 of its 32 elements were never written, the first at index (6, 0).
# prints: allocated at ...unwritten.py:11: x = torch.empty(8, 4, device="openreg")
# prints: Write to all elements first, for example with zero_() or copy_().
