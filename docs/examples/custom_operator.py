# SPDX-License-Identifier: BSD-3-Clause
"""A custom operator, with a CPU kernel first and then with a device kernel."""

import torch


@torch.library.custom_op("demo::triple", mutates_args=(), device_types="cpu")
def triple(x: torch.Tensor) -> torch.Tensor:
    """Multiplies by 3."""
    print("the CPU kernel, on", x.device)
    return x * 3


x = torch.ones(2, device="openreg")
print(triple(x))
# prints: the CPU kernel, on cpu
# prints: tensor([3., 3.], device='openreg:0')


@triple.register_kernel("openreg")
def _(x: torch.Tensor) -> torch.Tensor:
    print("the device kernel, on", x.device)
    return x + x + x


print(triple(x))
# prints: the device kernel, on openreg:0
# prints: tensor([3., 3.], device='openreg:0')
