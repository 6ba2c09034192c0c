# SPDX-License-Identifier: BSD-3-Clause
"""Reuse of a freed block, on its own stream and after record_stream."""

import torch
from torch import openreg

x = torch.empty(1000, device="openreg")
address = x.data_ptr()
del x
with openreg.stream(openreg.Stream()):
    print(torch.empty(1000, device="openreg").data_ptr() == address)
    # prints: False
x = torch.empty(1000, device="openreg")
print(x.data_ptr() == address)
# prints: True
x.record_stream(openreg.Stream())  # as if that stream used x
del x
stats = openreg.memory_stats()
print(stats["allocated_bytes.all.current"], stats["active_bytes.all.current"])
# prints: 0 4096
