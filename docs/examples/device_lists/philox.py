# SPDX-License-Identifier: BSD-3-Clause
"""Random numbers in compiled code, computed from a seed."""

# part: Compilers
# place: torch/_prims_common/__init__.py: CUDARngStateHelper.get_torch_state_as_tuple
# asks: not torch.cuda.is_available()
# means: the compiler option `functionalize_rng_ops` works for CUDA only
# noticed: an error
# way: closed

import torch
import torch._functorch.config

torch._functorch.config.functionalize_rng_ops = True
try:
    torch.compile(torch.rand_like, backend="aot_eager")(torch.ones(2, device="openreg"))
except Exception as error:
    print("CUDA not available" in str(error))
# prints: True
