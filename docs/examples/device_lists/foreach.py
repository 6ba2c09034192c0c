# SPDX-License-Identifier: BSD-3-Clause
"""Which optimizers take all parameters at once."""

# part: Mixed precision, gradients and optimizers
# place: torch/utils/_foreach_utils.py: _get_foreach_kernels_supported_devices
# asks: torch._C._get_privateuse1_backend_name()
# means: optimizers take the `_foreach` operators by default, as on CUDA and not on the
#   CPU; `_get_fused_kernels_supported_devices` and `capturable=True` have the name as
#   well
# noticed: nothing
# way: mechanism rename

from torch.utils._foreach_utils import _get_foreach_kernels_supported_devices

print("openreg" in _get_foreach_kernels_supported_devices())
# prints: True
# without it: False
