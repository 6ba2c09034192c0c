# SPDX-License-Identifier: BSD-3-Clause
"""With openreg-aten and openreg-profiler: the device's work in a trace."""

import json
import tempfile
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

import openreg_aten  # noqa: F401  the backend comes first

import openreg_profiler  # isort: skip

openreg_profiler.register()
x = torch.ones(100, 100, device="privateuseone")
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as result:
    (x @ x).sum().item()
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "trace.json")
    result.export_chrome_trace(str(path))
    events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
print([event["name"] for event in events if event.get("cat") == "kernel"])
# prints: ['mm_kernel', 'sum_kernel']
