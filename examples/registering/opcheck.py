# SPDX-License-Identifier: BSD-3-Clause
"""torch.library.opcheck: checks that the parts of an operator fit together."""

import torch
from torch import Tensor
from torch.testing._internal.optests.generate_tests import OpCheckError


@torch.library.custom_op("demo::twice", mutates_args=())
def twice(x: Tensor) -> Tensor:
    """Computes ``2 * x``."""
    return x + x


# [docs: fake]
twice.register_fake(torch.empty_like)
# [docs: end]

twice.register_autograd(lambda ctx, grad: 2 * grad)

x = torch.ones(2, 3, dtype=torch.float64, device="openreg", requires_grad=True)
checks = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")
print(*torch.library.opcheck(twice, (x,), test_utils=checks).items(), sep="\n")
# prints: ('test_schema', 'SUCCESS')
# prints: ('test_faketensor', 'SUCCESS')
# prints: ('test_aot_dispatch_dynamic', 'SUCCESS')
# without fake: There was no fake impl registered for

# The fourth check supports only the CPU, CUDA and XPU.
try:
    torch.library.opcheck(twice, (x,), test_utils="test_autograd_registration")
except OpCheckError as error:
    print(str(error.__cause__).partition(": ")[2])
# prints: NYI devices other than CPU/CUDA/XPU, got {'openreg'}
x = x.detach().cpu().requires_grad_()
print(torch.library.opcheck(twice, (x,), test_utils="test_autograd_registration"))
# prints: {'test_autograd_registration': 'SUCCESS'}
