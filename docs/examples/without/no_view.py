# SPDX-License-Identifier: BSD-3-Clause
"""A view changes only the metadata: it does not wait for the stream."""

import threading

import torch

from openreg_runtime import Device

x = torch.ones(8, device="openreg")
gate = threading.Event()
Device(0).default_stream.launch(gate.wait, 1)
x.view(2, 4)
print("waited:", torch.openreg.current_stream().query())
# prints: waited: False
# without it: waited: True
gate.set()
