# SPDX-License-Identifier: BSD-3-Clause
"""Tells ``torch.distributed`` of the backend and of symmetric memory.

torch-openreg imports this within ``import torch``, perhaps while the package above is
still half imported.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from types import FrameType

    from torch._C._distributed_c10d import Backend

_NAME = "occl"


def register() -> None:
    """Registers all of this package for the device's present name.

    That is the backend, which a group that names none then has for tensors of the
    device, and the memory of ``torch.distributed._symmetric_memory``. More calls do
    nothing. Importing torch does this already where torch-openreg is installed.

    Raises:
        RuntimeError: If torch was built without ``torch.distributed``.
    """
    register_backend()
    register_symmetric_memory()


def register_backend() -> None:
    """Registers the backend alone, which the first group loads."""
    from torch import distributed

    if not distributed.is_available():
        raise RuntimeError("occl needs torch.distributed, which this torch lacks")
    device = torch._C._get_privateuse1_backend_name()
    backend = distributed.Backend
    if backend.backend_capability.get(_NAME) == [device]:
        return
    backend.register_backend(_NAME, _create, extended_api=True, devices=[device])


def register_symmetric_memory() -> None:
    """Registers the allocator of symmetric memory, which is C++ of this package."""
    from openreg_distributed import _C

    _C.register_symmetric_memory()


def _create(options: Any, backend_options: Any) -> Backend:
    """Makes the backend of a group, as ``torch.distributed`` asks for it."""
    from openreg_distributed import _engine

    _set_default_backend(sys._getframe(1))
    return _engine.create(options, backend_options)


def _set_default_backend(caller: FrameType) -> None:
    """Makes occl the default backend of a group that is made without a name of one.

    PyTorch makes gloo its default unless it has NCCL, and then DistributedDataParallel
    does not find that default: "Could not find backend type 1". The group is known to
    nobody yet but the function of PyTorch that makes it, and calls us.
    """
    group = caller.f_locals.get("pg")
    if caller.f_locals.get("backend") == "undefined" and group is not None:
        group._set_default_backend(type(group).BackendType.CUSTOM)
