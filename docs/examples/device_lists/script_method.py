# SPDX-License-Identifier: BSD-3-Clause
"""A device method in TorchScript."""

# part: Compilers
# place: torch/csrc/jit/runtime/register_prim_ops.cpp
# asks: aten::cuda
# means: TorchScript has `x.cpu()` and `x.cuda()`, but not `x.openreg()`
# noticed: an error
# way: open `x.to("openreg")`

import torch


def moves(x: torch.Tensor):
    """Moves with the device method."""
    return x.openreg()


def moves_by_name(x: torch.Tensor):
    """Moves with the device name."""
    return x.to("openreg")


try:
    torch.jit.script(moves)
except RuntimeError as error:
    print("has no attribute or method 'openreg'" in str(error).replace("object ", ""))
# prints: True
print(torch.jit.script(moves_by_name)(torch.ones(1)).device)
# prints: openreg:0
