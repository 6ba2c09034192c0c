# SPDX-License-Identifier: BSD-3-Clause
"""A library bug that the default device hides."""

import torch


def with_positions(x):
    """A library function that forgets device=x.device."""
    return x + torch.arange(x.shape[-1])


try:
    with_positions(torch.ones(4, device="openreg"))
except RuntimeError as error:
    print("explicit device:", str(error).partition(",")[0])
# prints: explicit device: Expected all tensors to be on the same device

torch.set_default_device("openreg")
print("default device:", with_positions(torch.ones(4)).device)
# prints: default device: openreg:0
