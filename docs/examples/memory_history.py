# SPDX-License-Identifier: BSD-3-Clause
"""Memory history: blocks in use, allocator actions and their stack frames."""

import torch
from torch.openreg import memory


def make_weights() -> torch.Tensor:
    """Allocates 4000 bytes."""
    return torch.empty(1000, device="openreg")


memory._record_memory_history(stacks="python")
weights = make_weights()
torch.empty(10, device="openreg")
snapshot = memory._snapshot()
block = snapshot["segments"][0]["blocks"][0]
print(block["size"], block["state"], block["frames"][0]["name"])
# prints: 4096 active_allocated make_weights
print([entry["action"] for entry in snapshot["device_traces"][0]][:4])
# prints: ['segment_alloc', 'alloc', 'alloc', 'free_requested']
