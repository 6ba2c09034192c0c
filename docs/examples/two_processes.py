# SPDX-License-Identifier: BSD-3-Clause
"""A block that two processes share; an event signals that its bytes are written."""

import subprocess
import sys

from openreg_runtime import Buffer, Event, Stream

stream = Stream()
if len(sys.argv) == 1:
    block, ready = Buffer(4), Event(interprocess=True)
    block.copy_from(b"ping", stream)
    ready.record(stream)
    handles = [block.ipc_handle().hex(), ready.ipc_handle().hex()]
    subprocess.run([sys.executable, __file__, *handles], check=True)
    answer = bytearray(4)
    block.copy_to(answer)
    print(answer.decode())
    # prints: pong
else:
    block = Buffer.from_ipc(bytes.fromhex(sys.argv[1]))
    stream.wait_event(Event.from_ipc(bytes.fromhex(sys.argv[2])))
    question = bytearray(4)
    block.copy_to(question, stream)
    if question == b"ping":
        block.copy_from(b"pong")
