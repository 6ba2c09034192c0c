# SPDX-License-Identifier: BSD-3-Clause
"""torch.library.custom_op: a new operator, with a decorator for each part."""

import torch
from torch import Tensor
from torch._subclasses import FakeTensorMode

seen = []  # the device of each kernel call


# [docs: define]
@torch.library.custom_op("demo::scaled_abs", mutates_args=(), device_types="cpu")
def scaled_abs(x: Tensor, scale: float) -> Tensor:
    """Computes ``abs(x) * scale``; the schema comes from the annotations."""
    seen.append(x.device.type)
    return torch.from_numpy(abs(x.numpy()) * scale)


# [docs: end]


# [docs: kernel]
@scaled_abs.register_kernel("openreg")
def _(x: Tensor, scale: float) -> Tensor:
    seen.append(x.device.type)
    return x.abs().mul_(scale)


# [docs: end]


# [docs: fake]
@scaled_abs.register_fake
def _(x: Tensor, scale: float) -> Tensor:
    return torch.empty_like(x)


# [docs: end]


# [docs: autograd]
def setup_context(ctx, inputs: tuple[Tensor, float], output: Tensor) -> None:
    """Saves the arguments for the backward pass."""
    ctx.x, ctx.scale = inputs


def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:
    """Returns one gradient for each argument."""
    return grad * ctx.x.sign() * ctx.scale, None


scaled_abs.register_autograd(backward, setup_context=setup_context)
# [docs: end]


# [docs: vmap]
@scaled_abs.register_vmap
def _(info, in_dims: tuple, x: Tensor, scale: float) -> tuple[Tensor, int]:
    return scaled_abs(x, scale), in_dims[0]  # elementwise: any dimension


# [docs: end]

# [docs: autocast]
torch.library.register_autocast("demo::scaled_abs", "openreg", torch.float16)
# [docs: end]

x = torch.tensor([[-1.0, 2.0], [-3.0, 4.0]], dtype=torch.float64, device="openreg")
print(scaled_abs(x, 2.0).cpu().equal(scaled_abs(x.cpu(), 2.0)), seen)
# prints: True ['openreg', 'cpu']
# without kernel: True ['cpu', 'cpu']

with torch.autocast("openreg"):
    print(scaled_abs(x.float(), 2.0).dtype)
# prints: torch.float16
# without autocast: torch.float32

x.requires_grad_()
print(torch.autograd.gradcheck(scaled_abs, (x, 2.0)))
# prints: True
# without autograd: but no autograd formula was registered.

print(torch.func.vmap(scaled_abs, (1, None))(x, 2.0).tolist())
# prints: [[2.0, 6.0], [4.0, 8.0]]
# without vmap: we have not yet implemented the batching rule for demo::scaled_abs.

with FakeTensorMode():
    print(scaled_abs(torch.empty(2, 3, device="openreg"), 2.0))
# prints: FakeTensor(..., device='openreg:0', size=(2, 3))
# without fake: There was no fake impl registered for
