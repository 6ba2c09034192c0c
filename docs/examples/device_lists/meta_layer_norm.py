# SPDX-License-Identifier: BSD-3-Clause
"""The dtype that the compiler expects of layer norm statistics."""

# part: Compilers
# place: torch/_refs/__init__.py: native_layer_norm
# asks: input.device.type in ["cpu", "mtia"]
# means: for bfloat16 the compiler expects mean and deviation in float32, as on CUDA.
#   The CPU kernel, which runs here, returns bfloat16. `native_batch_norm` has the same
#   problem
# noticed: nothing
# way: closed

import torch
from torch._subclasses.fake_tensor import FakeTensorMode


def normalize() -> tuple[torch.Tensor, ...]:
    """Returns the result, the mean and the deviation of a layer."""
    x, weight = torch.ones(2, 4, device="openreg", dtype=torch.bfloat16)
    return torch.native_layer_norm(x, [4], weight, weight, 1e-5)


with FakeTensorMode():
    print(normalize()[1].dtype)
# prints: torch.float32
print(normalize()[1].dtype)
# prints: torch.bfloat16
