# SPDX-License-Identifier: BSD-3-Clause
"""Memory that the kernels of several processes reach."""

import torch.distributed._symmetric_memory as symmetric_memory

symmetric_memory.empty(4, device="openreg")
# fails: RuntimeError: SymmetricMemory does not support device type openreg
