# SPDX-License-Identifier: BSD-3-Clause
"""An event for another process."""

# part: Tensors and memory
# place: torch/csrc/Event.cpp: THPEvent_ipc_handle
# asks: ipc is not supported yet
# means: events of a generic `torch.Event` cannot be sent; for tensors of another
#   process this backend waits in the sender
# noticed: an error
# way: closed

import torch

try:
    torch.Event("openreg").ipc_handle()
except RuntimeError as error:
    print(str(error)[:36])
# prints: torch.Event ipc is not supported yet
