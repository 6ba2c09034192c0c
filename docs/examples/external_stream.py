# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch work on a stream that another library created."""

import torch

import openreg_runtime

external = openreg_runtime.Stream(device=0)  # in C: orStreamCreate
stream = torch.openreg.ExternalStream(external.handle)
with torch.openreg.stream(stream):
    x = torch.arange(4.0, device="openreg") * 2
external.launch(print, "after the product")
external.synchronize()
# prints: after the product
print(x.tolist())
# prints: [0.0, 2.0, 4.0, 6.0]
