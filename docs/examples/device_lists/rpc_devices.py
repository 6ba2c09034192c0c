# SPDX-License-Identifier: BSD-3-Clause
"""Devices for RPC."""

# part: Distributed
# place: torch/distributed/rpc/options.py: _to_device
# asks: device.type != "cuda"
# means: RPC accepts CUDA devices only
# noticed: an error
# way: closed

from torch.distributed.rpc import TensorPipeRpcBackendOptions

try:
    TensorPipeRpcBackendOptions(devices=["openreg:0"])
except ValueError as error:
    print(error)
# prints: `set_devices` expect a list of CUDA devices, but got device type openreg.
