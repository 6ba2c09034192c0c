# SPDX-License-Identifier: BSD-3-Clause
"""The older way to choose a default device."""

# part: Tensors and memory
# place: torch/__init__.py: set_default_tensor_type
# asks: _import_dotted_name(t)
# means: `torch.cuda.FloatTensor` and similar classes have no counterparts. Use
#   `torch.set_default_device`
# noticed: an error
# way: open `torch.set_default_device("openreg")`

import torch

try:
    torch.set_default_tensor_type("torch.openreg.FloatTensor")
except AttributeError as error:
    print(str(error)[-30:])
# prints: has no attribute 'FloatTensor'
torch.set_default_device("openreg")
print(torch.ones(1).device)
# prints: openreg:0
