# SPDX-License-Identifier: BSD-3-Clause
"""A dispatch key that all operators without a kernel for it skip."""
# environment: OPENREG_DISABLE=autocast

import torch

# [docs: fallthrough]
library = torch.library.Library("_", "IMPL")
library.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
# [docs: end]

x = torch.ones(2, device="openreg")
key = torch._C.DispatchKey.AutocastPrivateUse1
torch._C._dispatch_tls_set_dispatch_key_excluded(key, False)  # as autocast does
print((x + x).tolist())
# prints: [2.0, 2.0]
# without fallthrough: Could not run 'aten::add.Tensor' with arguments from the
