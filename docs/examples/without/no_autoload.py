# SPDX-License-Identifier: BSD-3-Clause
"""import torch alone makes the device available."""

import torch

print(torch.device("openreg"))
# prints: openreg
# without it: RuntimeError: Expected one of cpu,
