# SPDX-License-Identifier: BSD-3-Clause
"""Reads a described device as a profile, for ``OPENREG_PROFILE``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from openreg_predict._devices.description import load_device
from openreg_predict._devices.hardware import hardware

_CAPABILITIES: Mapping[str, tuple[int, int]] = {
    "pascal": (6, 0), "volta": (7, 0), "turing": (7, 5), "ampere": (8, 0),
    "ada": (8, 9), "hopper": (9, 0), "blackwell": (10, 0), "blackwell-rtx": (12, 0),
}  # fmt: skip
# The boards of these generations with GDDR memory, which is slower than HBM in bytes
# per second, have other chips.
_WITH_GDDR: Mapping[str, tuple[float, tuple[int, int]]] = {
    "pascal": (5e11, (6, 1)),
    "ampere": (1.2e12, (8, 6)),
}


def read_profile(name_or_path: str) -> dict[str, Any]:
    """Returns the arguments of ``torch_openreg._profiles.Profile``.

    Args:
        name_or_path: A device of this package, or a file.

    Raises:
        ValueError: If the device is unknown, the file is invalid, or the generation
            has no compute capability.
    """
    device = load_device(name_or_path)
    capability = _CAPABILITIES.get(device.generation)
    if capability is None:
        raise ValueError(
            f"device {device.name!r} has the generation {device.generation!r}, which "
            f"has no compute capability: expected one of {', '.join(_CAPABILITIES)}"
        )
    hbm, other = _WITH_GDDR.get(device.generation, (0.0, capability))
    if device["memory_bandwidth"] < hbm:
        capability = other
    facts = hardware(device)
    peers = device.get("peer_domain")
    return {
        "name": device.name,
        "capability": capability,
        "total_memory": int(
            device["memory_capacity"] - (device.get("ecc_memory") or 0)
        ),
        "multi_processor_count": int(facts.units),
        "l2_cache_size": int(facts.l2),
        "peer_access": None if peers is None else peers > 1,
    }
