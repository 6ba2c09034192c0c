# SPDX-License-Identifier: BSD-3-Clause
"""A default device hides a tensor that a library makes without a device."""

import torch


def with_positions(x):
    """A library's function; it lacks device=x.device."""
    return x + torch.arange(x.shape[-1])


try:
    with_positions(torch.ones(4, device="openreg"))
except RuntimeError as error:
    print("the test names the device:", str(error).partition(",")[0])
# prints: the test names the device: Expected all tensors to be on the same device

torch.set_default_device("openreg")
print("default device:", with_positions(torch.ones(4)).device)
# prints: default device: openreg:0
