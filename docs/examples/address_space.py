# SPDX-License-Identifier: BSD-3-Clause
"""The two addresses of device memory: the device address and the kernel address."""

import ctypes

from openreg_runtime import Buffer

block = Buffer(4)
other = Buffer(4, device=1)
block.copy_from(b"abcd")
print(bytes((ctypes.c_char * 4).from_address(block.kernel_address)))
# prints: b'abcd'
# The distance is the same for all devices of the process.
distances = {each.kernel_address - each.address for each in (block, other)}
print(len(distances))
# prints: 1
try:
    memoryview(block)
except BufferError as error:
    print(str(error).partition(";")[0])
    # prints: the host cannot read memory of openreg:0
