# SPDX-License-Identifier: BSD-3-Clause
"""A method of the device in TorchScript."""

# part: Compilers
# place: torch/csrc/jit/runtime/register_prim_ops.cpp
# asks: aten::cuda
# means: TorchScript knows `x.cpu()` and `x.cuda()`, and not `x.openreg()`
# noticed: an error
# way: open `x.to("openreg")`

import torch


def moves(x: torch.Tensor):
    """Moves by the method of the device."""
    return x.openreg()


def moves_by_name(x: torch.Tensor):
    """Moves by the name of the device."""
    return x.to("openreg")


try:
    torch.jit.script(moves)
except RuntimeError as error:
    print("has no attribute or method 'openreg'" in str(error).replace("object ", ""))
# prints: True
print(torch.jit.script(moves_by_name)(torch.ones(1)).device)
# prints: openreg:0
