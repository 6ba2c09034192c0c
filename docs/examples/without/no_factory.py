# SPDX-License-Identifier: BSD-3-Clause
"""A new tensor does not wait for the work that the stream has."""

import threading

import torch

from openreg_runtime import Device

torch.openreg.init()
gate = threading.Event()
Device(0).default_stream.launch(gate.wait, 1)
torch.empty(8, device="openreg")
print("waited:", torch.openreg.current_stream().query())
# prints: waited: False
# without it: waited: True
gate.set()
