# SPDX-License-Identifier: BSD-3-Clause
"""Dropout draws from the device generator, not from the CPU generator."""

import torch

before = torch.get_rng_state()
torch.nn.functional.dropout(torch.ones(8, device="openreg"))
print(torch.get_rng_state().equal(before))
# prints: True
# without it: False
