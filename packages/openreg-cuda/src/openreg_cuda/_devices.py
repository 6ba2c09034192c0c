# SPDX-License-Identifier: BSD-3-Clause
"""Devices: their number, the current one, and synchronization."""

from __future__ import annotations

import os

from openreg_cuda._backend import compiled, openreg


def version() -> str | None:
    """Returns the CUDA version that ``OPENREG_CUDA_VERSION`` sets, or None.

    Raises:
        ValueError: If it is not a version such as 12.8.
    """
    value = os.environ.get("OPENREG_CUDA_VERSION")
    if not value:
        return None
    parts = value.split(".")
    if len(parts) != 2 or not all(part.isdecimal() for part in parts):
        raise ValueError(
            f"OPENREG_CUDA_VERSION: expected a version such as 12.8, got {value!r}"
        )
    return value


def _init() -> None:
    # torch.cuda calls it once per process, before its first use of a device.
    from openreg_cuda import _completion

    _completion.start()


def _compiled_version() -> int:
    major, minor = (version() or "0.0").split(".")
    return 1000 * int(major) + 10 * int(minor)


def _set(device: int) -> None:
    compiled().set_device(device)


def _exchange(device: int) -> int:
    if device < 0:
        return -1
    return int(compiled().exchange_device(device))


def _maybe_exchange(device: int) -> int:
    if device < 0:
        return -1
    return int(compiled().maybe_exchange_device(device))


def _arch_flags() -> str:
    # torch.cuda calls it before it initializes the devices.
    properties = openreg().get_device_properties(0)
    return f"sm_{properties.major}{properties.minor}"


def _has_primary_context(device: int) -> bool:
    del device
    return bool(openreg().is_initialized())


NAMES: dict[str, object] = {
    "_has_cuda": True,
    "_cuda_init": _init,
    "_cuda_isInBadFork": lambda: compiled().is_in_bad_fork(),
    "_cuda_getDeviceCount": lambda: compiled().device_count(),
    "_cuda_getDevice": lambda: compiled().current_device(),
    "_cuda_setDevice": _set,
    "_cuda_exchangeDevice": _exchange,
    "_cuda_maybeExchangeDevice": _maybe_exchange,
    "_cuda_hasPrimaryContext": _has_primary_context,
    "_cuda_canDeviceAccessPeer": lambda device, peer: openreg().can_device_access_peer(
        device, peer
    ),
    "_cuda_synchronize": lambda: openreg().synchronize(),
    "_cuda_sleep": lambda cycles: openreg()._sleep(cycles),
    "_cuda_ipc_collect": lambda: openreg().ipc_collect(),
    "_cuda_getArchFlags": _arch_flags,
    "_cuda_getCompiledVersion": _compiled_version,
}
