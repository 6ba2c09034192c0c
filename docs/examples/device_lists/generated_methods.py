# SPDX-License-Identifier: BSD-3-Clause
"""Methods and properties named after the device."""

# part: Tensors and memory
# place: torch/utils/backend_registration.py:
#   _generate_packed_sequence_methods_for_privateuse1_backend
# asks: f"is_{custom_backend_name}"
# means: PyTorch generates the counterparts of `x.cuda()` and `x.is_cuda` on request
#   only, for tensors, storages, modules and packed sequences
# noticed: an error
# way: mechanism methods

import torch
from torch.nn.utils.rnn import pack_sequence

packed = pack_sequence([torch.ones(2)]).openreg()
print(packed.is_openreg, packed.is_cuda)
# prints: True False
# without it: 'PackedSequence' object has no attribute 'openreg'
