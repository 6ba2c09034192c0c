# SPDX-License-Identifier: BSD-3-Clause
"""openreg-runtime alone: memory, streams, events and kernels, without PyTorch."""

import importlib.util

import openreg_runtime as runtime

buffer, result = runtime.Buffer(4), bytearray(4)
stream = runtime.Stream()
buffer.copy_from(b"abcd", stream)
done = runtime.Event()
done.record(stream)
done.synchronize()
buffer.copy_to(result)
print(result.decode(), "on", buffer.device)
# prints: abcd on Device(0)

with runtime.failures.memory_limit(2**20):
    try:
        runtime.Buffer(2**24)
    except runtime.OpenRegError as error:
        print(error.name)
        # prints: orErrorMemoryAllocation

# Tensors need openreg-aten.
print(importlib.util.find_spec("openreg_aten"))
# prints: None
