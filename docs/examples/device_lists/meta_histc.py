# SPDX-License-Identifier: BSD-3-Clause
"""The dtypes that the compiler accepts for a histogram."""

# part: Compilers
# place: torch/_meta_registrations.py: meta_histc
# asks: device_hint(input) == "cpu"
# means: the compiler accepts integers, and the CPU kernel rejects them
# noticed: an error
# way: mechanism wider_dtypes

import torch
from torch._subclasses.fake_tensor import FakeTensorMode


def count() -> torch.Tensor:
    """Returns a histogram of integers."""
    return torch.histc(torch.ones(3, dtype=torch.long, device="openreg"), bins=2)


with FakeTensorMode():
    print(count().dtype)
# prints: torch.int64
try:
    print(count().tolist())
except NotImplementedError as error:
    print(error)
# prints: [0, 3]
# without it: "histogram_openreg" not implemented for 'Long'
