# SPDX-License-Identifier: BSD-3-Clause
"""A kernel error, which the next call that waits for the stream reports."""

from openreg_runtime import Buffer, Device, OpenRegError

stream = Device(0).default_stream
stream.launch(int, "seven")  # returns immediately
try:
    stream.synchronize()
except OpenRegError as error:
    print(error.name)
    # prints: orErrorLaunchFailure
stream.synchronize()  # reported once; the stream accepts work again

block = Buffer(16)
try:
    block.copy_from(bytes(17))
except OpenRegError as error:  # the call itself checks its arguments
    print(str(error).partition(" of the block")[0])
    # prints: orMemcpy: 17 bytes at offset 0 of dst pass the end
