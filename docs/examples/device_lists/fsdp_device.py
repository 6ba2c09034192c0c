# SPDX-License-Identifier: BSD-3-Clause
"""The device module that FSDP uses."""

# part: Distributed
# place: torch/distributed/fsdp/_common_utils.py: _FSDPDeviceHandle.from_device
# asks: device.type == "cuda"
# means: FSDP takes streams, events and the current device from `torch.openreg`
# noticed: an error
# way: mechanism device_module

import torch
from torch.distributed.fsdp._common_utils import _FSDPDeviceHandle

handle = _FSDPDeviceHandle.from_device(torch.device("openreg"))
print(handle.current_stream().device)
# prints: openreg:0
# without it: does not have a corresponding backend registered as 'torch.openreg'
