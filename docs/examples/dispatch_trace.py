# SPDX-License-Identifier: BSD-3-Clause
"""Dispatch modes, which replace the dispatch trace that PyTorch releases lack."""
# environment: TORCH_SHOW_DISPATCH_TRACE=1

import os
import tempfile
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode


class Calls(TorchFunctionMode):
    """Prints each call from Python before it reaches the dispatcher."""

    def __torch_function__(self, func, types, args=(), kwargs=None) -> Any:
        """Runs for each torch function."""
        print("call", getattr(func, "__name__", func))
        return func(*args, **(kwargs or {}))


class Operators(TorchDispatchMode):
    """Prints each operator that reaches the backend, below autograd and autocast."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None) -> Any:
        """Runs for each operator that reaches the backend key."""
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

# A PyTorch build with the trace would write it to stderr.
with tempfile.TemporaryFile() as file:
    stderr = os.dup(2)
    os.dup2(file.fileno(), 2)
    x.square()
    os.dup2(stderr, 2)
    print("the trace has", file.seek(0, os.SEEK_END), "bytes")
# prints: the trace has 0 bytes
