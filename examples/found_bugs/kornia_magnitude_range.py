# SPDX-License-Identifier: BSD-3-Clause
"""kornia 0.9.0: an operation of its automatic augmentations leaves a tensor behind.

The range of magnitudes is a plain attribute in place of a buffer, so that ``to`` does not
move it, and forward_parameters adds a tensor of the CPU to one of the device.
"""

from __future__ import annotations

import sys

import torch
from kornia.augmentation.auto.operations import ops

device = sys.argv[1] if len(sys.argv) > 1 else "openreg"
rotate = ops.Rotate(initial_probability=1.0).to(device)
rotated = rotate(torch.rand(2, 3, 8, 8, device=device))
print(rotated.shape)  # on the device: Expected all tensors to be on the same device
