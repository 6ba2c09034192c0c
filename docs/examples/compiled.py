# SPDX-License-Identifier: BSD-3-Clause
"""A compiled function, which returns the same numbers as on the CPU."""

import threading

import torch

from openreg_runtime import Device

smooth = torch.compile(lambda x: (x.sin() * 2).softmax(-1))


on_cpu = torch.randn(8, 100)
x = on_cpu.to("openreg")
print(smooth(x).cpu().equal(smooth(on_cpu)))
# prints: True

gate = threading.Event()
Device(0).default_stream.launch(gate.wait, 30)  # blocks the stream
with torch.openreg.operator_paths() as paths:
    y = smooth(x)
for name, path in paths.calls:
    print(path, name.startswith("compiled::"))
    # prints: enqueued True
print(torch.openreg.current_stream().query())
# prints: False
gate.set()
print(y.sum(-1).cpu().allclose(torch.ones(8)))
# prints: True
