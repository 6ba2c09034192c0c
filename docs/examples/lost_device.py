# SPDX-License-Identifier: BSD-3-Clause
"""A device that is lost for a while, next to a device that still works."""

from openreg_runtime import Buffer, OpenRegError, failures

block, other = Buffer(16, device=0), Buffer(16, device=1)
with failures.lost_device(0):
    try:
        block.fill(1)
    except OpenRegError as error:
        print(error)
        # prints: orMemset: device 0 was lost (orDeviceLose)
    other.fill(1)

try:
    block.fill(1)  # its memory was released
except OpenRegError as error:
    print(error)
    # prints: Buffer: device 0 was reset, which ended this block of 16 bytes
Buffer(16, device=0).fill(1)  # the device works again
