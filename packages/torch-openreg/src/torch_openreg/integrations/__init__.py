# SPDX-License-Identifier: BSD-3-Clause
"""The device for libraries that keep lists of the devices they know.

Each module is named after its library and imports it; nothing else does. A library is
left alone until a program calls the function of the module: ``accelerate.enable``,
``deepspeed.enable`` or ``lightning.register``.
"""
