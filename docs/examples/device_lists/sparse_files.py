# SPDX-License-Identifier: BSD-3-Clause
"""Sparse tensors in files."""

# part: Tensors and memory
# place: torch/_tensor.py: Tensor._reduce_ex_internal
# asks: torch._C._get_privateuse1_backend_name()
# means: `torch.save` writes sparse tensors as CPU tensors, and for these `torch.load`
#   raises an error if `map_location` is a function. In the old format, without zip,
#   PyTorch reads a tensor before its bytes are available: indices and values are
#   arbitrary
# noticed: nothing
# way: closed

import io

import torch

file = io.BytesIO()
torch.save(torch.eye(2, device="openreg").to_sparse(), file)
file.seek(0)
print(torch.load(file, map_location="cpu").values())
# prints: tensor([1., 1.])
file.seek(0)
try:
    torch.load(file, map_location=lambda storage, _: storage)
except RuntimeError as error:
    print(str(error)[:35])
# prints: Callable map_location not supported
