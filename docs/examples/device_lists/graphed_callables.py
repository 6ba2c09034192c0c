# SPDX-License-Identifier: BSD-3-Clause
"""A model captured as a graph."""

# part: Tensors and memory
# place: torch/cuda/graphs.py: make_graphed_callables
# asks: CUDAGraph()
# means: `make_graphed_callables` captures CUDA graphs only. Use
#   `torch.accelerator.Graph`, for which a backend can register a class:
#   [`graph`](graph.md)
# noticed: an error
# way: closed

import torch

model = torch.nn.Linear(2, 2).to("openreg")
try:
    torch.cuda.make_graphed_callables(model, (torch.ones(1, 2, device="openreg"),))
except RuntimeError as error:
    print(error)
# prints: Tried to instantiate dummy base class CUDAGraph
