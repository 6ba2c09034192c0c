# SPDX-License-Identifier: BSD-3-Clause
"""A copy between the device and pinned memory that does not block the host."""

import threading

import torch

from openreg_runtime import Device

gate = threading.Event()
pinned = torch.ones(4).pin_memory()
x = torch.empty(4, device="openreg")

Device(0).default_stream.launch(gate.wait, 30)  # blocks the stream
x.copy_(pinned, non_blocking=True)  # enqueued behind the gate
print(torch.openreg.current_stream().query())
# prints: False
gate.set()
print((x + x).tolist())  # the host waits for values that it reads
# prints: [2.0, 2.0, 2.0, 2.0]
