# SPDX-License-Identifier: BSD-3-Clause
"""An autocast region on the device."""

import torch

x = torch.ones(2, 2, device="openreg")
with torch.autocast("openreg"):
    print((x @ x).dtype)
# prints: torch.float16
# without it: RuntimeError: Autocast on openreg is left out:
