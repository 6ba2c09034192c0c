# SPDX-License-Identifier: BSD-3-Clause
"""Which copies leave the host free: those between the device and pinned memory."""

import threading

import torch

from openreg_runtime import Device

gate = threading.Event()
pinned = torch.ones(4).pin_memory()
x = torch.empty(4, device="openreg")

Device(0).default_stream.launch(gate.wait, 30)  # keeps the stream busy
x.copy_(pinned, non_blocking=True)  # waits in the queue behind it
print(torch.openreg.current_stream().query())
# prints: False
gate.set()
print((x + x).tolist())  # what the host reads, it waits for
# prints: [2.0, 2.0, 2.0, 2.0]
