# SPDX-License-Identifier: BSD-3-Clause
"""Activity records of the runtime, without torch."""

import openreg_runtime as runtime
from openreg_runtime import activity


def work() -> None:
    """An empty kernel."""


stream = runtime.Stream()
buffer = runtime.Buffer(1000)
with activity.record(kinds=["kernel", "memcpy"]) as recording:
    stream.launch(work)
    buffer.copy_from(bytes(1000), stream)
    stream.synchronize()
for each in recording.take():
    assert each.enqueued <= each.started <= each.ended
    print(each.kind, each.name, each.device, each.bytes, each.direction, each.memory)
# prints: kernel work 0 0 None None
# prints: memcpy memcpy 0 1000 HtoD pageable
