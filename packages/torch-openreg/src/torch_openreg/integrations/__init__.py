# SPDX-License-Identifier: BSD-3-Clause
"""The device for libraries that have lists of supported devices.

Each module is named after its library, and only it imports the library. It does not
change the library until a program calls the module's function: ``accelerate.enable``,
``deepspeed.enable`` or ``lightning.register``.
"""
