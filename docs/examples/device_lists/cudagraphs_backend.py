# SPDX-License-Identifier: BSD-3-Clause
"""The compiler that records graphs."""

# part: Compilers
# place: torch/_inductor/cudagraph_utils.py: check_multiple_devices_or_any_cpu_nodes
# asks: .type == "cuda"
# means: `torch.compile(backend="cudagraphs")` records nothing, and runs the operators
#   one by one
# noticed: a warning
# way: closed

import torch

compiled = torch.compile(lambda x: x + 1, backend="cudagraphs")
print(compiled(torch.ones(1, device="openreg")).item())
# prints: 2.0
# warns: skipping cudagraphs due to multiple devices
