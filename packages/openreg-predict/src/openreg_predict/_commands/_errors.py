# SPDX-License-Identifier: BSD-3-Clause
"""The error that ends a command with a message and status 2."""

from __future__ import annotations

from openreg_predict._devices.description import (
    DescribedDevice,
    DeviceFileError,
    load_device,
)


class CommandError(Exception):
    """An argument or a file is wrong; the message names it and what is accepted."""


def device_of(argument: str) -> DescribedDevice:
    """Reads the device of the argument ``--device``.

    Raises:
        CommandError: If the device is unknown, or its file is not valid.
    """
    try:
        return load_device(argument)
    except DeviceFileError as error:
        raise CommandError(f"argument --device: {error}") from error
