# SPDX-License-Identifier: BSD-3-Clause
"""The GPU trace calls Python before the host waits for a device."""

import torch

waits = []
trace = torch.openreg._gpu_trace
trace.DeviceSynchronizationCallbacks.add_callback(lambda: waits.append("device"))
trace.EventSynchronizationCallbacks.add_callback(lambda _: waits.append("event"))
torch._C._activate_gpu_trace()

event = torch.Event("openreg")
event.record()
event.synchronize()
torch.openreg.synchronize()
print(waits)
# prints: ['event', 'device']
# without it: []
