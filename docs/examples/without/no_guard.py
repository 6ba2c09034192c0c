# SPDX-License-Identifier: BSD-3-Clause
"""Streams, events and the current device go through the guard."""

import torch

print(torch.Stream("openreg").device)
# prints: openreg:0
# without it: RuntimeError: PyTorch is not linked with support for openreg devices
