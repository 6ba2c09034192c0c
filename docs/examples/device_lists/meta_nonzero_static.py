# SPDX-License-Identifier: BSD-3-Clause
"""The strides that the compiler expects of indices."""

# part: Compilers
# place: torch/_meta_registrations.py: nonzero_static
# asks: device_hint(self) in ("cpu", "mps", "xpu")
# means: the compiler expects the strides of the CUDA kernel: `stride()` returns
#   different values in compiled code, and a `view` that works in eager mode is rejected
# noticed: nothing
# way: closed

import torch


def strides(x: torch.Tensor) -> tuple[int, ...]:
    """Returns the strides of the indices."""
    return torch.nonzero_static(x, size=4).stride()


x = torch.ones(3, 2, device="openreg")
print(strides(x), torch.compile(strides, backend="eager")(x))
# prints: (2, 1) (1, 4)
