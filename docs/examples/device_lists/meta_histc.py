# SPDX-License-Identifier: BSD-3-Clause
"""The dtypes that a compiler accepts for a histogram."""

# part: Compilers
# place: torch/_meta_registrations.py: meta_histc
# asks: device_hint(input) == "cpu"
# means: integers pass the compiler, and fail in the kernel, which is the CPU's
# noticed: an error
# way: closed

import torch
from torch._subclasses.fake_tensor import FakeTensorMode


def count() -> torch.Tensor:
    """Returns the histogram of integers."""
    return torch.histc(torch.ones(3, dtype=torch.long, device="openreg"), bins=2)


with FakeTensorMode():
    print(count().dtype)
# prints: torch.int64
try:
    count()
except NotImplementedError as error:
    print(error)
# prints: "histogram_cpu" not implemented for 'Long'
