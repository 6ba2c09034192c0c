# SPDX-License-Identifier: BSD-3-Clause
"""An invalid setting, which the first use reports and the import does not."""
# environment: OPENREG_DEVICE_COUNT=none

import textwrap

import torch

import openreg_runtime

print(torch.openreg.is_available())
# prints: False
try:
    openreg_runtime.Device(0)
except openreg_runtime.OpenRegError as error:
    print(textwrap.fill(str(error), 70))
    # prints: orGetDeviceProperties: environment variable
    # prints: OPENREG_DEVICE_COUNT='none' is not valid: expected a whole number from
    # prints: 1 to 64
