# SPDX-License-Identifier: BSD-3-Clause
"""Creating a tensor enqueues no kernel, even if the stream is busy."""

import threading

import torch

from openreg_runtime import Device

torch.openreg.init()
gate = threading.Event()
Device(0).default_stream.launch(gate.wait, 1)
with torch.openreg.operator_paths() as paths:
    torch.empty(8, device="openreg")
gate.set()
print(dict(paths.calls))
# prints: {}
# without it: {('aten::empty.memory_format', 'enqueued'): 1}
