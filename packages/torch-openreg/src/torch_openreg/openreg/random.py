# SPDX-License-Identifier: BSD-3-Clause
"""Random numbers: each device has its own generator.

With the same seed it draws the same numbers as the CPU generator. Its offset is the
count of 32-bit numbers drawn since the seed. Seeds and states that are set before the
first use of a device take effect at that use.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, overload

import torch

from openreg_aten import _C

from . import _lazy
from ._utils import valid_device_index

if TYPE_CHECKING:
    from torch.types import Device


class _DefaultGenerators(Sequence[torch.Generator]):
    """The generators by device; a lookup starts the devices."""

    @overload
    def __getitem__(self, index: int) -> torch.Generator: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[torch.Generator, ...]: ...
    def __getitem__(
        self, index: int | slice
    ) -> torch.Generator | tuple[torch.Generator, ...]:
        _lazy.init()
        return tuple(map(_C.default_generator, range(len(self))))[index]

    def __len__(self) -> int:
        return _C.device_count()


default_generators: Sequence[torch.Generator] = _DefaultGenerators()


def _get_generator(device: Device = None) -> torch.Generator:
    return _C.default_generator(valid_device_index(device))


def get_rng_state(device: Device = None) -> torch.Tensor:
    """Returns the state of a device's generator. As ``torch.cuda.get_rng_state``.

    Args:
        device: Device, index or name; the current device by default.

    Returns:
        A CPU ByteTensor of shape (16,) with the seed and the offset, or of shape
        (5056,) with the state of a CPU generator if a whole state was set that the seed
        does not reach. Normals that are drawn one by one come in pairs, of which the
        generator may keep one: it is in the storage of the tensor.

    Raises:
        RuntimeError: If the device does not exist.
    """
    return _get_generator(device).get_state()


def get_rng_state_all() -> list[torch.Tensor]:
    """Returns the generator states of all devices.

    As ``torch.cuda.get_rng_state_all``.
    """
    return [generator.get_state() for generator in default_generators]


def set_rng_state(new_state: torch.Tensor, device: Device = None) -> None:
    """Sets the state of a device's generator. As ``torch.cuda.set_rng_state``.

    Args:
        new_state: A state from ``get_rng_state`` or ``torch.get_rng_state``.
        device: Device, index or name; the current device by default.

    Raises:
        RuntimeError: If the device does not exist or ``new_state`` is not a state. If
            no device was used before, it is raised at the first use.
    """
    if not _lazy.is_initialized():
        new_state = new_state.clone()
    _lazy.lazy_call(lambda: _get_generator(device).set_state(new_state), seed=True)


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Sets the states of all devices' generators. As ``torch.cuda.set_rng_state_all``.

    Args:
        new_states: One state per device, as from ``get_rng_state_all``.
    """
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def manual_seed(seed: int) -> None:
    """Seeds the current device's generator. As ``torch.cuda.manual_seed``.

    Args:
        seed: Integer, as for ``torch.manual_seed``.
    """
    seed = int(seed)
    _lazy.lazy_call(lambda: _get_generator().manual_seed(seed), seed=True)


def manual_seed_all(seed: int) -> None:
    """Seeds the generators of all devices, as ``torch.manual_seed`` also does.

    As ``torch.cuda.manual_seed_all``.

    Args:
        seed: Integer, as for ``torch.manual_seed``.
    """
    seed = int(seed)
    _lazy.lazy_call(lambda: _seed_all(seed), seed_all=True)


def seed() -> None:
    """Seeds the current device's generator with a random number.

    As ``torch.cuda.seed``.
    """
    _lazy.lazy_call(lambda: _get_generator().seed(), seed=True)


def seed_all() -> None:
    """Seeds all devices' generators with the same random number.

    As ``torch.cuda.seed_all``.
    """
    _lazy.lazy_call(lambda: _seed_all(_get_generator(0).seed()), seed_all=True)


def initial_seed() -> int:
    """Returns the seed of the current device's generator.

    As ``torch.cuda.initial_seed``.
    """
    return _get_generator().initial_seed()


def _seed_all(seed: int) -> None:
    for generator in default_generators:
        generator.manual_seed(seed)
