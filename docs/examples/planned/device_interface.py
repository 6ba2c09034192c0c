# SPDX-License-Identifier: BSD-3-Clause
"""Dynamo asks for streams, events and properties of the device."""

from torch._dynamo.device_interface import get_interface_for_device

get_interface_for_device("openreg")
# fails: NotImplementedError: No interface for device openreg
