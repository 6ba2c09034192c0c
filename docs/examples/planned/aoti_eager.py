# SPDX-License-Identifier: BSD-3-Clause
"""Inductor is asked to compile the kernels of an eager operator."""

import torch

library = torch.library.Library("aten", "IMPL")
library._impl_with_aoti_compile("sin", "PrivateUse1")
# fails: RuntimeError: AOTI for eager does not support OPENREG now.
