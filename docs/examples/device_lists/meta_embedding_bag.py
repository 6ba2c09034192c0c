# SPDX-License-Identifier: BSD-3-Clause
"""The shapes that the compiler expects of an embedding bag."""

# part: Compilers
# place: torch/_meta_registrations.py: meta_embedding_bag
# asks: device_hint(offsets) != "cpu"
# means: the compiler expects the shapes of the CUDA kernel for the extra results. The
#   CPU kernel, which runs here, returns other shapes
# noticed: nothing
# way: closed

import torch
from torch._subclasses.fake_tensor import FakeTensorMode


def embed() -> list[tuple[int, ...]]:
    """Returns the shapes of all results."""
    weight = torch.ones(10, 4, device="openreg")
    indices = torch.zeros(6, dtype=torch.long, device="openreg")
    offsets = torch.zeros(2, dtype=torch.long, device="openreg")
    return [tuple(x.shape) for x in torch.embedding_bag(weight, indices, offsets)]


with FakeTensorMode():
    print(embed())
# prints: [(2, 4), (6,), (2,), (0,)]
print(embed())
# prints: [(2, 4), (0,), (2,), (2,)]
