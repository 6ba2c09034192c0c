# SPDX-License-Identifier: BSD-3-Clause
"""A copy to pinned memory, which does not block the host."""

import threading

from openreg_runtime import Buffer, Stream, pinned

gate = threading.Event()
stream, block, memory = Stream(), Buffer(8), bytearray(8)
with pinned(memory):  # waits for the enqueued work when it exits
    stream.launch(gate.wait, 30)
    block.fill(ord("x"), stream)
    block.copy_to(memory, stream)  # returns immediately
    print(memory == bytes(8))
    # prints: True
    gate.set()
print(memory.decode())
# prints: xxxxxxxx
