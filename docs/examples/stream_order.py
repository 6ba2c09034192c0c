# SPDX-License-Identifier: BSD-3-Clause
"""Stream order without torch: a stream runs its work in launch order."""

from openreg_runtime import Buffer, Device, PinnedBuffer

stream = Device(0).default_stream
done: list[int] = []
for step in range(3):
    stream.launch(done.append, step)
stream.synchronize()
print(done)
# prints: [0, 1, 2]

block = Buffer(4, device=0)
pinned = PinnedBuffer(4)
block.fill(7, stream)
block.copy_to(pinned, stream)  # in order, without waiting
stream.synchronize()
print(bytes(pinned).hex())
# prints: 07070707
