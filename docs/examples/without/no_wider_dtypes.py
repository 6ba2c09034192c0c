# SPDX-License-Identifier: BSD-3-Clause
"""The CPU has a kernel for neither of these calls; CUDA has both."""

import torch

experts = torch.tensor([0, 2, 2, 3], dtype=torch.int32, device="openreg")
print(torch.histc(experts, bins=4, min=0, max=3).tolist())
volume = torch.arange(8.0, device="openreg").half().view(1, 2, 2, 2)
print(torch.nn.functional.avg_pool3d(volume, 2).flatten())
# prints: [1, 0, 2, 1]
# prints: tensor([3.5000], device='openreg:0', dtype=torch.float16)
# without it: "histogram_openreg" not implemented for 'Int'
