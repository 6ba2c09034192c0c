# SPDX-License-Identifier: BSD-3-Clause
"""One seed for every device."""

# part: Tensors and memory
# place: torch/random.py: _seed_custom_device
# asks: custom_backend_name = torch._C._get_privateuse1_backend_name()
# means: `torch.manual_seed` seeds a fixed list of device types, and the backend if its
#   module has `manual_seed_all`
# noticed: an error
# way: mechanism device_module

import torch

torch.manual_seed(0)
first = torch.rand(1, device="openreg:1")
torch.manual_seed(0)
print(torch.equal(first, torch.rand(1, device="openreg:1")))
# prints: True
# without it: No module named 'torch.openreg'
