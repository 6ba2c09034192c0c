# SPDX-License-Identifier: BSD-3-Clause
"""A Python fallback for all operators, for a backend without a fallback."""
# environment: OPENREG_DISABLE=fallback

from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

seen = []


def on_cpu(op: torch._ops.OpOverload, *args: Any, **kwargs: Any) -> Any:
    """Runs any operator on copies and copies modified arguments back."""
    seen.append(str(op))
    schema = op._schema.arguments
    values = dict(zip((each.name for each in schema), args, strict=False)) | kwargs
    copies = tree_map_only(Tensor, Tensor.cpu, values)
    results = op(**copies)
    written = [each.name for each in schema if each.is_write and each.name in values]
    for name in written:
        values[name].copy_(copies[name])
    if written:
        return values[written[0]]
    return tree_map_only(Tensor, lambda each: each.to("openreg"), results)


# [docs: fallback]
library = torch.library.Library("_", "IMPL")
library.fallback(on_cpu, "PrivateUse1")
# [docs: end]

x = torch.tensor([1, 1, 3], device="openreg")
x.put_(x[:1], x[2:])
print(x.tolist(), x.bincount().tolist(), seen)
# prints: [1, 3, 3] [0, 1, 0, 2] ['aten.put_.default', 'aten.bincount.default']
# without fallback: Could not run 'aten::put_' with arguments from the 'openreg' backend

# A key can have one fallback. A second registration raises an error.
try:
    torch.library.Library("_", "IMPL").fallback(on_cpu, "PrivateUse1")
except RuntimeError as error:
    print(str(error).partition(" for the same")[0])
# prints: Tried to register multiple backend fallbacks
