# SPDX-License-Identifier: BSD-3-Clause
"""``OPENREG_PROFILE``: the device answers questions as a GPU of a model.

A profile is built in, or another package reads it from a file: it registers a function
as an entry point of the group ``openreg.profiles``.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from torch_openreg import _settings

# The settings that a profile decides unless the program has set them, and the variables
# that keep the values which this process or its parent has derived from a profile.
_MEMORY = "OPENREG_DEVICE_MEMORY"
_PEER_ACCESS = "OPENREG_PEER_ACCESS"
_DERIVED = {
    _MEMORY: "_OPENREG_PROFILE_MEMORY",
    _PEER_ACCESS: "_OPENREG_PROFILE_PEER_ACCESS",
}


@dataclass(frozen=True)
class Profile:
    """The properties of a GPU.

    Attributes:
        name: The name of the model.
        capability: CUDA's compute capability.
        total_memory: The bytes of memory that CUDA reports.
        multi_processor_count: The number of streaming multiprocessors.
        l2_cache_size: The bytes of the cache that they share.
        peer_access: Whether the devices may access each other's memory, or None if it
            depends on the host.
    """

    name: str
    capability: tuple[int, int]
    total_memory: int
    multi_processor_count: int
    l2_cache_size: int
    peer_access: bool | None = None

    @property
    def has_bfloat16(self) -> bool:
        """Whether it computes in bfloat16 without emulation."""
        return self.capability >= (8, 0)


@cache
def built_in() -> dict[str, Profile]:
    """Returns the built-in profiles by name, from ``built_in_profiles.toml``."""
    file = Path(__file__).with_name("built_in_profiles.toml")
    described = tomllib.loads(file.read_text(encoding="utf-8"))
    del described["sources"]
    return {name: _profile_of(facts) for name, facts in described.items()}


def _profile_of(facts: Mapping[str, Any]) -> Profile:
    known = {
        each.name: facts[each.name] for each in fields(Profile) if each.name in facts
    }
    return Profile(**known | {"capability": tuple(facts["capability"])})


@cache
def profile() -> Profile | None:
    """Returns the profile of this process, or None without ``OPENREG_PROFILE``.

    Raises:
        ValueError: If its value is not a built-in profile and no package reads it.
    """
    value = _settings.profile_name()
    return None if value == "none" else load(value)


def load(value: str) -> Profile:
    """Returns a profile.

    Args:
        value: The name of a built-in profile, or a file that a package reads.

    Raises:
        ValueError: If there is no profile of this name, or the file is invalid.
    """
    if value in built_in():
        return built_in()[value]
    known = ", ".join(built_in())
    readers = list(entry_points(group="openreg.profiles"))
    wrong = f"environment variable OPENREG_PROFILE={value!r} is not valid"
    if not readers:
        raise ValueError(
            f"{wrong}: expected none or one of {known}; device files "
            "need the package openreg-predict"
        )
    try:
        facts = readers[0].load()(value)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{wrong}: expected none, one of {known}, or a device file: {error}"
        ) from error
    return Profile(**facts)


def apply() -> None:
    """Makes the devices describe themselves as the GPU, before their first use.

    ``OPENREG_DEVICE_MEMORY`` and ``OPENREG_PEER_ACCESS`` win, except if they have the
    values of another profile, which a parent process has applied.

    Raises:
        ValueError: If ``OPENREG_PROFILE`` is invalid.
    """
    chosen = profile()
    for setting, derived in _DERIVED.items():
        value = os.environ.pop(derived, None)
        if value is not None and os.environ.get(setting) == value:
            del os.environ[setting]
    if chosen is None:
        return
    from openreg_runtime._C import set_device_model

    _derive(_MEMORY, str(chosen.total_memory))
    if chosen.peer_access is not None:
        _derive(_PEER_ACCESS, str(int(chosen.peer_access)))
    set_device_model(chosen.name, chosen.capability, chosen.multi_processor_count)


def _derive(setting: str, value: str) -> None:
    if setting not in os.environ:
        os.environ[setting] = os.environ[_DERIVED[setting]] = value
