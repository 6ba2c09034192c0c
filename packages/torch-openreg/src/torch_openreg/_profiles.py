# SPDX-License-Identifier: BSD-3-Clause
"""``OPENREG_PROFILE``: the device answers questions as a GPU of a model.

A profile is built in, or another package reads it from a file: it registers a function
as an entry point of the group ``openreg.profiles``.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points

from torch_openreg import _settings

_GIB = 1 << 30
_MEMORY = "OPENREG_DEVICE_MEMORY"
# The value that this process or its parent has derived from a profile.
_DERIVED = "_OPENREG_PROFILE_MEMORY"


@dataclass(frozen=True)
class Profile:
    """The properties of a GPU.

    Attributes:
        name: The name of the model.
        capability: CUDA's compute capability.
        total_memory: The bytes of memory that PyTorch reports.
        multi_processor_count: The number of streaming multiprocessors.
        l2_cache_size: The bytes of the cache that they share.
    """

    name: str
    capability: tuple[int, int]
    total_memory: int
    multi_processor_count: int
    l2_cache_size: int

    @property
    def has_bfloat16(self) -> bool:
        """Whether it computes in bfloat16 without emulation."""
        return self.capability >= (8, 0)


# The memory is what messages of torch.OutOfMemoryError report as the total capacity: a
# part is reserved, for example for error correction (ECC).
BUILT_IN = {
    "p100": Profile("Tesla P100-PCIE-16GB", (6, 0), int(15.89 * _GIB), 56, 4 << 20),
    "v100": Profile("Tesla V100-SXM2-16GB", (7, 0), int(15.77 * _GIB), 80, 6 << 20),
    "t4": Profile("Tesla T4", (7, 5), int(14.56 * _GIB), 40, 4 << 20),
    "a100": Profile("NVIDIA A100-SXM4-40GB", (8, 0), int(39.39 * _GIB), 108, 40 << 20),
    "l4": Profile("NVIDIA L4", (8, 9), int(22.03 * _GIB), 58, 48 << 20),
    "h100": Profile("NVIDIA H100 80GB HBM3", (9, 0), int(79.10 * _GIB), 132, 50 << 20),
}


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
    if value in BUILT_IN:
        return BUILT_IN[value]
    readers = list(entry_points(group="openreg.profiles"))
    wrong = f"environment variable OPENREG_PROFILE={value!r} is not valid"
    if not readers:
        raise ValueError(
            f"{wrong}: expected none or one of {', '.join(BUILT_IN)}; device files "
            "need the package openreg-predict"
        )
    try:
        facts = readers[0].load()(value)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{wrong}: expected none, one of {', '.join(BUILT_IN)}, or a device file: "
            f"{error}"
        ) from error
    return Profile(**facts)


def apply() -> None:
    """Makes the devices describe themselves as the GPU, before their first use.

    ``OPENREG_DEVICE_MEMORY`` wins, except if it has the value of another profile, which
    a parent process has applied.

    Raises:
        ValueError: If ``OPENREG_PROFILE`` is invalid.
    """
    chosen = profile()
    derived = os.environ.get(_DERIVED)
    if derived is not None and os.environ.get(_MEMORY) == derived:
        del os.environ[_MEMORY]
    os.environ.pop(_DERIVED, None)
    if chosen is None:
        return
    from openreg_runtime._C import set_device_model

    if _MEMORY not in os.environ:
        os.environ[_MEMORY] = os.environ[_DERIVED] = str(chosen.total_memory)
    set_device_model(chosen.name, chosen.capability, chosen.multi_processor_count)
