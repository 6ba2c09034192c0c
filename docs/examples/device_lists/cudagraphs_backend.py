# SPDX-License-Identifier: BSD-3-Clause
"""The compiler backend that records graphs."""

# part: Compilers
# place: torch/_inductor/cudagraph_utils.py: check_multiple_devices_or_any_cpu_nodes
# asks: .type == "cuda"
# means: `torch.compile(backend="cudagraphs")` and `mode="reduce-overhead"` record
#   nothing; the former runs the operators one by one
# noticed: a warning
# way: mechanism inductor

import torch
from torch._dynamo.utils import counters

compiled = torch.compile(lambda x: x + 1, backend="cudagraphs")
for _ in range(2):
    compiled(torch.ones(1, device="openreg"))
print(counters["inductor"]["cudagraph_skips"])
# prints: 0
# without it: 1
