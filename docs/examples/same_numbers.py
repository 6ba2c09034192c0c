# SPDX-License-Identifier: BSD-3-Clause
"""Random numbers: the same seed gives the same numbers as on the CPU."""

import torch

torch.manual_seed(7)  # seeds the CPU and every device
on_cpu = torch.randn(100)
on_device = torch.randn(100, device="openreg")
print(on_device.cpu().equal(on_cpu))
# prints: True
before = torch.get_rng_state()
torch.randn(100, device="openreg")
print(torch.get_rng_state().equal(before))  # the CPU generator is unchanged
# prints: True
