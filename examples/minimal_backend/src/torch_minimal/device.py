# SPDX-License-Identifier: BSD-3-Clause
"""``torch.minimal``: the functions that PyTorch and users expect in a device module."""

from __future__ import annotations

import torch
from torch import Event, Stream  # noqa: F401
from torch.accelerator import (  # noqa: F401  (part of torch.minimal)
    current_stream,
    set_stream,
    synchronize,
)
from torch.accelerator.memory import (  # noqa: F401
    empty_cache,
    max_memory_allocated,
    memory_allocated,
    memory_reserved,
    memory_stats,
    reset_peak_memory_stats,
)

_initialized = True  # torch.utils.checkpoint reads it


def is_available() -> bool:
    """Returns whether a device is available."""
    return device_count() > 0


def is_initialized() -> bool:
    """Returns whether a device can be used; the driver starts on first use."""
    return _initialized and not _is_in_bad_fork()


def device_count() -> int:
    """Returns the number of devices."""
    return torch.ops.minimal.device_count()


def set_device(which: torch.device | str | int) -> None:
    """Sets the current device of this thread."""
    torch.accelerator.set_device_index(which)


def current_device() -> int:
    """Returns the index of the current device of this thread."""
    return torch.accelerator.current_device_index()


def device(which: torch.device | str | int) -> torch.accelerator.device_index:
    """Sets the current device inside a ``with`` block."""
    return torch.accelerator.device_index(_index(which))


def stream(which: torch.Stream) -> torch.Stream:
    """Sets the current stream inside a ``with`` block."""
    return which


def _index(which: torch.device | str | int) -> int | None:
    return which if isinstance(which, int) else torch.device(which).index


def _lazy_init() -> None:
    """Does nothing: the driver starts on first use."""


def _is_in_bad_fork() -> bool:
    return torch.ops.minimal.is_in_bad_fork()


# [step 9]
# [docs: module-generator]
def _generator(which: torch.device | str | int) -> torch.Generator:
    index = _index(which)
    return torch.ops.minimal.default_generator(-1 if index is None else index)


def manual_seed(seed: int) -> None:
    """Seeds the default generator of the current device."""
    _generator(current_device()).manual_seed(seed)


def initial_seed() -> int:
    """Returns the seed of the current device's default generator."""
    return _generator(current_device()).initial_seed()


def manual_seed_all(seed: int) -> None:
    """Seeds the default generators of all devices."""
    for index in range(device_count()):
        _generator(index).manual_seed(seed)


def get_rng_state(which: torch.device | str | int = "minimal") -> torch.Tensor:
    """Returns the seed and offset of a device's default generator, as 16 bytes."""
    return _generator(which).get_state()


def set_rng_state(
    new_state: torch.Tensor, which: torch.device | str | int = "minimal"
) -> None:
    """Restores a state that :func:`get_rng_state` returned."""
    _generator(which).set_state(new_state)


# [docs: end]
# [step end]


# [step 10]
# [docs: module-autocast]
def get_amp_supported_dtype() -> list[torch.dtype]:
    """Lists the dtypes that ``torch.autocast`` may compute in."""
    return [torch.float16, torch.bfloat16]


# [docs: end]
# [step end]
