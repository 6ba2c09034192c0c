# SPDX-License-Identifier: BSD-3-Clause
"""Dynamo and Inductor get streams, events and device properties from a class."""

from torch._dynamo.device_interface import get_interface_for_device

interface = get_interface_for_device("openreg")
# without it: NotImplementedError: No interface for device openreg
with interface.device(1):
    print(interface.current_device(), interface.is_bf16_supported())
# prints: 1 True
