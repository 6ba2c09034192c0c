# SPDX-License-Identifier: BSD-3-Clause
"""The check that all processes draw the same random numbers."""

# part: Distributed
# place: torch/distributed/collective_utils.py: _check_rng_sync_internal
# asks: generator.device.type == "cuda"
# means: the check rejects generators of this device
# noticed: an error
# way: closed

import torch
from torch.distributed.collective_utils import _check_rng_sync_internal

try:
    _check_rng_sync_internal(torch.Generator("openreg"), None)
except NotImplementedError as error:
    print(error)
# prints: Unsupported generator device: openreg
