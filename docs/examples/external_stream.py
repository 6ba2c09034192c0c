# SPDX-License-Identifier: BSD-3-Clause
"""Work of PyTorch on a stream that another library made."""

import torch

import openreg_runtime

theirs = openreg_runtime.Stream(device=0)  # in C: orStreamCreate
stream = torch.openreg.ExternalStream(theirs.handle)
with torch.openreg.stream(stream):
    x = torch.arange(4.0, device="openreg") * 2
theirs.launch(print, "after the product")
theirs.synchronize()
# prints: after the product
print(x.tolist())
# prints: [0.0, 2.0, 4.0, 6.0]
