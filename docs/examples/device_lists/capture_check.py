# SPDX-License-Identifier: BSD-3-Clause
"""The check that an optimizer can be captured in a graph."""

# part: Mixed precision, gradients and optimizers
# place: torch/optim/optimizer.py: Optimizer._accelerator_graph_capture_health_check
# asks: accelerator.type in {"cuda", "xpu"}
# means: `step()` does not warn that `capturable=True` has a cost outside a graph, and
#   can be captured without this option
# noticed: nothing
# way: closed

import warnings

import torch

parameter = torch.nn.Parameter(torch.ones(1, device="openreg"))
parameter.grad = torch.ones_like(parameter)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    torch.optim.Adam([parameter], capturable=True).step()
print(len(caught))
# prints: 0
