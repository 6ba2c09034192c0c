# SPDX-License-Identifier: BSD-3-Clause
"""A kernel that replaces a composite kernel, with the derivative that it needs."""

import torch
from torch import Tensor

library = torch.library.Library("aten", "IMPL")


def square(x: Tensor) -> Tensor:
    """Writes into its output, as kernels do, so autograd cannot derive a gradient."""
    return torch.mul(x.detach(), x.detach(), out=torch.empty_like(x.detach()))


# [docs: kernel]
library.impl("square", square, "PrivateUse1")
# [docs: end]


class Square(torch.autograd.Function):
    """The derivative that the composite kernel provided."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        """Calls the operator again, without autograd."""
        ctx.save_for_backward(x)
        with torch._C._AutoDispatchBelowAutograd():
            return torch.square(x)

    @staticmethod
    def backward(ctx, grad: Tensor) -> Tensor:
        """Returns the gradient of x * x."""
        (x,) = ctx.saved_tensors
        return grad * x * 2


# [docs: autograd]
library.impl("square", Square.apply, "AutogradPrivateUse1")
# [docs: end]

x = torch.tensor([-1.0, 2.0], dtype=torch.float64, device="openreg", requires_grad=True)
y = x.square()
print(y.tolist(), y.grad_fn.name())
# prints: [1.0, 4.0] SquareBackward
# without autograd: [1.0, 4.0] torch::autograd::WarnNotImplemented

print(torch.autograd.gradcheck(torch.square, x))
# prints: True
