# SPDX-License-Identifier: BSD-3-Clause
"""Operators that are enqueued without blocking the host."""

import threading

import torch

from openreg_runtime import Device

weight = torch.randn(64, 64, device="openreg")
x = torch.randn(8, 64, device="openreg")
torch.tanh(x @ weight).sum()  # caches the result shapes

gate = threading.Event()
Device(0).default_stream.launch(gate.wait, 30)  # blocks the stream
with torch.openreg.operator_paths() as paths:
    y = torch.tanh(x @ weight).sum()
print(dict(sorted(paths.calls)))
# prints: {'aten::mm': 'enqueued', 'aten::sum': 'enqueued', 'aten::tanh': 'enqueued'}
print(torch.openreg.current_stream().query())
# prints: False
gate.set()
print(torch.isclose(y.cpu(), torch.tanh(x.cpu() @ weight.cpu()).sum()).item())
# prints: True
