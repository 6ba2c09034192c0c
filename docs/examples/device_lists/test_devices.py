# SPDX-License-Identifier: BSD-3-Clause
"""The devices that PyTorch's own tests run on."""

# part: Tools
# place: torch/testing/_internal/common_utils.py: NATIVE_DEVICES
# asks: torch._C._get_privateuse1_backend_name()
# means: tests marked `onlyNativeDeviceTypes` run for the name that the backend had when
#   the module was imported
# noticed: nothing
# way: mechanism rename

from torch.testing._internal.common_utils import NATIVE_DEVICES

print("openreg" in NATIVE_DEVICES)
# prints: True
# without it: False
