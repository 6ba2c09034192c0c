# SPDX-License-Identifier: BSD-3-Clause
"""Inductor compiles the kernel of an eager operator."""

import torch

x = torch.eye(3, device="openreg")
library = torch.library.Library("aten", "IMPL")
library._impl_with_aoti_compile("relu", "PrivateUse1")
print(torch.relu(x).trace().item())
# prints: 3.0
# without it: RuntimeError: AOTI for eager does not support OPENREG now.
