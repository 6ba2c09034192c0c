# SPDX-License-Identifier: BSD-3-Clause
"""torch.openreg, with the functions of torch.cuda, and torch.accelerator."""

import torch
from torch import openreg

print(openreg.is_available(), openreg.device_count())
# prints: True 2
with openreg.device(1):
    x = torch.ones(2, device="openreg")
print(x.device, x.is_openreg, openreg.current_device())
# prints: openreg:1 True 0

side = openreg.Stream()
with openreg.stream(side):
    mark = side.record_event()
openreg.current_stream().wait_event(mark)
openreg.synchronize()

print(torch.accelerator.current_accelerator())
# prints: openreg
print(torch.accelerator.memory_allocated(1) == openreg.memory_allocated(1))
# prints: True
