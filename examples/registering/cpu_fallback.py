# SPDX-License-Identifier: BSD-3-Clause
"""A single operator that runs on the CPU, with copies of its arguments."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

DEVICE = "openreg"


# A third-party operator: registered for every device, but its kernel needs the host.
@torch.library.custom_op("demo::unwrap", mutates_args=())
def unwrap(phase: Tensor) -> Tensor:
    """Removes the jumps from an angle in radians."""
    return torch.from_numpy(np.unwrap(phase.numpy()))


def on_cpu(op: torch._ops.OpOverload) -> Callable[..., Any]:
    """Returns a kernel that copies tensors to the CPU and results back."""

    def kernel(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tree_map_only(Tensor, Tensor.cpu, (args, kwargs))
        return tree_map_only(Tensor, lambda each: each.to(DEVICE), op(*args, **kwargs))

    return kernel


# [docs: fallback]
library = torch.library.Library("demo", "FRAGMENT")
library.impl("unwrap", on_cpu(torch.ops.demo.unwrap.default), "PrivateUse1")
# [docs: end]

phase = torch.tensor([0.0, 3.0, 6.2, 0.1], device=DEVICE)
result = unwrap(phase)
print(result.device, result.cpu().equal(unwrap(phase.cpu())))
# prints: openreg:0 True
# without fallback: can't convert openreg:0 device type tensor to numpy.
