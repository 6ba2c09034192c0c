# SPDX-License-Identifier: BSD-3-Clause
"""The scale of a loss."""

# part: Mixed precision, gradients and optimizers
# place: torch/amp/grad_scaler.py: GradScaler.__init__
# asks: device: str = "cuda"
# means: without an argument, `torch.amp.GradScaler()` scales nothing
# noticed: a warning
# way: open `torch.amp.GradScaler("openreg")`

import torch

print(torch.amp.GradScaler().is_enabled(), torch.amp.GradScaler("openreg").is_enabled())
# prints: False True
# warns: torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.
