# SPDX-License-Identifier: BSD-3-Clause
"""Injected failures: the third allocation, then every second launch."""

from openreg_runtime import Buffer, OpenRegError, Stream, failures

blocks = []
with failures.inject_failure("malloc", first=3) as failure:
    try:
        while True:
            blocks.append(Buffer(1024))
    except OpenRegError as error:
        print(error.name)
        # prints: orErrorMemoryAllocation
        print(error)
        # prints: orMalloc: injected failure: allocation number 3 on device 0
print(len(blocks), failure.calls, failure.hits)
# prints: 2 3 1

stream = Stream()
with failures.inject_failure("launch", first=2, period=2):
    for number in range(1, 6):
        stream.launch(print, "kernel", number)
        try:
            stream.synchronize()
        except OpenRegError as error:
            print(error)
# prints: kernel 1
# prints: orStreamSynchronize: injected failure: launch number 2 on device 0
# prints: kernel 3
# prints: orStreamSynchronize: injected failure: launch number 4 on device 0
# prints: kernel 5
