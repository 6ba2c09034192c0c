# SPDX-License-Identifier: BSD-3-Clause
"""kornia 0.9.0: the random generator of an operation moves its numbers to the CPU.

``to`` moves the generator's buffers and samplers, and the magnitude, which is a
parameter. But the generator's forward() moves its random numbers to the device of the
ranges that its constructor received, and ``to`` does not move these ranges.
"""

from __future__ import annotations

import sys

import torch
from kornia.augmentation.auto.operations import ops

device = sys.argv[1] if len(sys.argv) > 1 else "openreg"
rotate = ops.Rotate(initial_probability=1.0).to(device)
rotated = rotate(torch.rand(2, 3, 8, 8, device=device))
print(rotated.shape)  # on the device: Expected all tensors to be on the same device
