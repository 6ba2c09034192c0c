# SPDX-License-Identifier: BSD-3-Clause
"""A kernel that fails is reported by the next call that waits for its stream."""

from openreg_runtime import Buffer, Device, OpenRegError

stream = Device(0).default_stream
stream.launch(int, "seven")  # returns at once
try:
    stream.synchronize()
except OpenRegError as error:
    print(error.name)
    # prints: orErrorLaunchFailure
stream.synchronize()  # reported once; the stream accepts work again

block = Buffer(16)
try:
    block.copy_from(bytes(17))
except OpenRegError as error:  # arguments are checked by the call itself
    print(str(error).partition(" of the block")[0])
    # prints: orMemcpy: 17 bytes at offset 0 of dst pass the end
