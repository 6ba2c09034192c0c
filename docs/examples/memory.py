# SPDX-License-Identifier: BSD-3-Clause
"""Allocator statistics: rounded blocks, cached segments and peak usage."""

import torch
from torch import openreg

x = torch.empty(1000, device="openreg")  # 4000 bytes
print(openreg.memory_allocated(), openreg.memory_reserved())
# prints: 4096 2097152
y = x.view(10, 100)  # the same storage
print(openreg.memory_allocated())
# prints: 4096
del x, y
print(openreg.memory_allocated(), openreg.memory_reserved())
# prints: 0 2097152
openreg.empty_cache()
print(openreg.memory_reserved(), openreg.max_memory_allocated())
# prints: 0 4096
