# SPDX-License-Identifier: BSD-3-Clause
"""The device is there without an import of its own."""

import torch

print(torch.device("openreg"))
# prints: openreg
# without it: RuntimeError: Expected one of cpu,
