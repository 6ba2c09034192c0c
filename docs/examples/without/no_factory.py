# SPDX-License-Identifier: BSD-3-Clause
"""A new tensor is no work for the stream, however busy that is."""

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
