# SPDX-License-Identifier: BSD-3-Clause
"""Loss scaling."""

# part: Mixed precision, gradients and optimizers
# place: torch/amp/grad_scaler.py: GradScaler.__init__
# asks: device: str = "cuda"
# means: `torch.amp.GradScaler()` without an argument is disabled
# noticed: a warning
# way: open `torch.amp.GradScaler("openreg")`

import torch

print(torch.amp.GradScaler().is_enabled(), torch.amp.GradScaler("openreg").is_enabled())
# prints: False True
# warns: torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.
