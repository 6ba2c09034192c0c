# SPDX-License-Identifier: BSD-3-Clause
"""A device generator, passed to a random operator."""

import torch

generator = torch.Generator("openreg").manual_seed(0)
on_cpu = torch.rand(4, generator=torch.Generator().manual_seed(0))
x = torch.rand(4, device="openreg", generator=generator)
print(x.cpu().equal(on_cpu))
# prints: True
# without it: and implement `getNewGenerator` at the same time for PrivateUse1.
