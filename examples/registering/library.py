# SPDX-License-Identifier: BSD-3-Clause
"""torch.library.Library: a new operator, key by key."""

import torch
from torch import Tensor

library = torch.library.Library("demo", "DEF")
# [docs: schema]
library.define("scaled_abs(Tensor x, float scale) -> Tensor")
# [docs: end]


def scaled_abs(x: Tensor, scale: float) -> Tensor:
    """Writes into its output, as kernels do, so autograd cannot derive a gradient."""
    out = torch.empty_like(x)
    torch.abs(x, out=out)
    return out.mul_(scale)


# [docs: kernel]
library.impl("scaled_abs", scaled_abs, "PrivateUse1")
# [docs: end]


# [docs: meta]
library.impl("scaled_abs", lambda x, scale: torch.empty_like(x), "Meta")
# [docs: end]


class ScaledAbs(torch.autograd.Function):
    """The derivative; its forward() calls the kernels below autograd."""

    @staticmethod
    def forward(ctx, x: Tensor, scale: float) -> Tensor:
        """Calls the operator again, without autograd."""
        ctx.save_for_backward(x)
        ctx.scale = scale
        with torch._C._AutoDispatchBelowAutograd():
            return torch.ops.demo.scaled_abs(x, scale)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:
        """Returns one gradient for each argument."""
        (x,) = ctx.saved_tensors
        return grad * x.sign() * ctx.scale, None


# [docs: autograd]
library.impl("scaled_abs", ScaledAbs.apply, "AutogradPrivateUse1")
# [docs: end]

x = torch.tensor([-1.0, 2.0, -3.0], dtype=torch.float64, device="openreg")
print(torch.ops.demo.scaled_abs(x, 2.0).tolist() == (x.cpu().abs() * 2).tolist())
# prints: True
# without schema: '_OpNamespace' 'demo' object has no attribute 'scaled_abs'
# without kernel: Could not run 'demo::scaled_abs' on device type openreg:

print(torch.ops.demo.scaled_abs(x.to("meta"), 2.0).shape)
# prints: torch.Size([3])
# without meta: there was no fake impl or Meta kernel registered

x.requires_grad_()
print(torch.autograd.gradcheck(torch.ops.demo.scaled_abs, (x, 2.0)))
# prints: True
# without autograd: functions with out=... arguments don't support automatic
