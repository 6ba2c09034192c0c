# SPDX-License-Identifier: BSD-3-Clause
"""The devices whose optimizers use `_foreach` operators by default."""

# part: Mixed precision, gradients and optimizers
# place: torch/utils/_foreach_utils.py: _get_foreach_kernels_supported_devices
# asks: torch._C._get_privateuse1_backend_name()
# means: optimizers use `_foreach` operators by default, as on CUDA and unlike on the
#   CPU. `_get_fused_kernels_supported_devices` and `capturable=True` check the backend
#   name as well
# noticed: nothing
# way: mechanism rename

from torch.utils._foreach_utils import _get_foreach_kernels_supported_devices

print("openreg" in _get_foreach_kernels_supported_devices())
# prints: True
# without it: False
