# SPDX-License-Identifier: BSD-3-Clause
"""A second device type from another library."""

# part: Tensors and memory
# place: c10/core/DeviceType.h
# asks: is_privateuse1_backend_registered
# means: a process has one PrivateUse1 backend, with one name
# noticed: an error
# way: closed

import torch

try:
    torch.utils.rename_privateuse1_backend("another")
except RuntimeError as error:
    print(str(error)[:58])
# prints: torch.register_privateuse1_backend() has already been set!
