# SPDX-License-Identifier: BSD-3-Clause
"""A memory limit and a wait timeout."""

import threading

from openreg_runtime import Buffer, Device, OpenRegError, Stream, failures

with failures.memory_limit(2**20):
    print(Device(0).free_memory)
    # prints: 1048576
    try:
        Buffer(2**20 + 1)
    except OpenRegError as error:
        print(str(error).rpartition(": ")[2])
        # prints: 1048576 of its 1048576 bytes are free
print(Device(0).memory_limit == Device(0).total_memory)
# prints: True

gate = threading.Event()
stream = Stream()
stream.launch(gate.wait, 30)
with failures.wait_timeout(0.02):
    try:
        stream.synchronize()
    except OpenRegError as error:
        print(error.name)
        # prints: orErrorTimeout
gate.set()
stream.synchronize()  # the kernel kept running after the timeout
