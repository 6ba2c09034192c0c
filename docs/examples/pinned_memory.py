# SPDX-License-Identifier: BSD-3-Clause
"""Copies go on without the host if its memory is pinned."""

import threading

from openreg_runtime import Buffer, Stream, pinned

gate = threading.Event()
stream, block, memory = Stream(), Buffer(8), bytearray(8)
with pinned(memory):  # at the end it waits for the work
    stream.launch(gate.wait, 30)
    block.fill(ord("x"), stream)
    block.copy_to(memory, stream)  # returns at once
    print(memory == bytes(8))
    # prints: True
    gate.set()
print(memory.decode())
# prints: xxxxxxxx
