# SPDX-License-Identifier: BSD-3-Clause
"""What PyTorch keeps for its own devices: each of these names them in its source."""

from collections.abc import Callable

import torch
from torch.nn.attention.flex_attention import flex_attention

x = torch.ones(1, 1, 16, 16, device="openreg")
model = torch.nn.Linear(16, 16).to("openreg")


def fails(call: Callable[[], object]) -> None:
    """Prints the beginning of the error that a call ends with."""
    try:
        call()
    except Exception as error:
        print(str(error)[:72])


fails(torch.cuda.MemPool)
# prints: Tried to instantiate dummy base class MemPool
fails(torch.cuda.graph_pool_handle)
# prints: Tried to instantiate dummy base class _graph_pool_handle
fails(lambda: torch.cuda.make_graphed_callables(model, (x,)))
# prints: Tried to instantiate dummy base class CUDAGraph
fails(torch.Event("openreg").ipc_handle)
# prints: torch.Event ipc is not supported yet, please open an issue if you need t
fails(torch.accelerator.memory._snapshot)
# prints: module 'torch._C' has no attribute '_cuda_memorySnapshot'
fails(lambda: flex_attention(x, x, x))
# prints: FlexAttention is only supported on CUDA, CPU, HPU, or MPS devices. Found
fails(lambda: torch.nn.DataParallel(model, device_ids=[0, 1])(x))
# prints: module 'torch._C' has no attribute '_scatter'
fails(x.__dlpack_device__)
# prints: Unknown device type openreg for Dlpack
fails(lambda: torch.utils.rename_privateuse1_backend("another"))
# prints: torch.register_privateuse1_backend() has already been set! Current backe
