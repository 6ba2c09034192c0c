# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's trace of dispatch is compiled out of the releases; modes are not."""
# environment: TORCH_SHOW_DISPATCH_TRACE=1

import os
import tempfile
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode


class Calls(TorchFunctionMode):
    """Prints what Python calls, before the dispatcher sees it."""

    def __torch_function__(self, func, types, args=(), kwargs=None) -> Any:
        """Is called for every function of torch."""
        print("call", getattr(func, "__name__", func))
        return func(*args, **(kwargs or {}))


class Operators(TorchDispatchMode):
    """Prints what is left below autograd and autocast, for the backend."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None) -> Any:
        """Is called for every operator that reaches the backend's key."""
        print("operator", func)
        return func(*args, **(kwargs or {}))


weight = torch.ones(2, 2, device="openreg", requires_grad=True)
x = torch.ones(2, 2, device="openreg")
with torch.autocast("openreg"), Operators(), Calls():
    y = torch.nn.functional.linear(x, weight)
# prints: call linear
# prints: operator aten._to_copy.default
# prints: operator aten._to_copy.default
# prints: operator aten.t.default
# prints: operator aten.mm.default
with Operators():
    y.backward(torch.ones_like(y))
# prints: operator aten.ones_like.default
# prints: operator aten.t.default
# prints: operator aten.mm.default
# prints: operator aten.t.default
# prints: operator aten.t.default
# prints: operator aten._to_copy.default
# prints: operator aten.detach.default

# The trace would go to the error output.
with tempfile.TemporaryFile() as file:
    error_output = os.dup(2)
    os.dup2(file.fileno(), 2)
    x.square()
    os.dup2(error_output, 2)
    print("the trace has", file.seek(0, os.SEEK_END), "bytes")
# prints: the trace has 0 bytes
